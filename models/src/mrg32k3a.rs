//! MRG32k3a, the generator of ns-3 (L'Ecuyer, Simard, Chen, Kelton: An object-oriented random-number package with
//! many long streams and substreams, Operations Research 2002), as far as profile `ns3` needs it.

use bytemuck::{Pod, Zeroable};

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

type Matrix = [[u64; 3]; 3];

/// One step of the generator's two components (`A1p0`, `A2p0` there).
const A1: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - 810_728, 1_403_580, 0]];
const A2: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - 1_370_589, 0, 527_612]];

/// Streams are 2^127 steps apart, substreams 2^76.
const STREAM_LOG2: u32 = 127;
const SUBSTREAM_LOG2: u32 = 76;

const fn times(a: &Matrix, b: &Matrix, m: u64) -> Matrix {
    let mut out = [[0; 3]; 3];
    let mut i = 0;
    while i < 9 {
        let (row, col) = (i / 3, i % 3);
        let mut sum = 0;
        let mut k = 0;
        while k < 3 {
            sum = (sum + a[row][k] * b[k][col] % m) % m;
            k += 1;
        }
        out[row][col] = sum;
        i += 1;
    }
    out
}

const fn power_of_two(mut a: Matrix, log2: u32, m: u64) -> Matrix {
    let mut i = 0;
    while i < log2 {
        a = times(&a, &a, m);
        i += 1;
    }
    a
}

const NEXT_STREAM: [Matrix; 2] = [power_of_two(A1, STREAM_LOG2, M1), power_of_two(A2, STREAM_LOG2, M2)];
const NEXT_SUBSTREAM: [Matrix; 2] = [power_of_two(A1, SUBSTREAM_LOG2, M1), power_of_two(A2, SUBSTREAM_LOG2, M2)];

fn apply(a: &Matrix, v: [u64; 3], m: u64) -> [u64; 3] {
    a.map(|row| (row[0] * v[0] % m + row[1] * v[1] % m + row[2] * v[2] % m) % m)
}

/// A generator's state.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub(crate) struct Mrg32k3a {
    s1: [u64; 3],
    s2: [u64; 3],
}

impl Mrg32k3a {
    /// Stream `stream` of ns-3's seed 1, run 1.
    pub(crate) fn stream(stream: u64) -> Mrg32k3a {
        let seed = Mrg32k3a { s1: [1; 3], s2: [1; 3] };
        let mut at = seed.jump(&NEXT_SUBSTREAM);
        let mut step = NEXT_STREAM;
        let mut left = stream;
        while left != 0 {
            if left & 1 != 0 {
                at = at.jump(&step);
            }
            step = [times(&step[0], &step[0], M1), times(&step[1], &step[1], M2)];
            left >>= 1;
        }
        at
    }

    /// The same position in the next stream.
    pub(crate) fn next_stream(&self) -> Mrg32k3a {
        self.jump(&NEXT_STREAM)
    }

    fn jump(&self, by: &[Matrix; 2]) -> Mrg32k3a {
        Mrg32k3a { s1: apply(&by[0], self.s1, M1), s2: apply(&by[1], self.s2, M2) }
    }

    /// The next number, in (0, 1).
    pub(crate) fn draw(&mut self) -> f64 {
        let p1 = (A1[2][0] * self.s1[0] % M1 + A1[2][1] * self.s1[1] % M1) % M1;
        let p2 = (A2[2][0] * self.s2[0] % M2 + A2[2][2] * self.s2[2] % M2) % M2;
        self.s1 = [self.s1[1], self.s1[2], p1];
        self.s2 = [self.s2[1], self.s2[2], p2];
        let difference = if p1 > p2 { p1 - p2 } else { p1 + M1 - p2 };
        difference as f64 * 2.328_306_549_295_728e-10
    }
}

#[cfg(test)]
mod tests {
    // The expected values are ns-3's, digit for digit.
    #![allow(clippy::excessive_precision)]
    use super::*;

    #[test]
    fn first_numbers_of_streams_equal_those_of_ns3() {
        let cases = [
            (0, 0.816_532_044_168_250_98),
            (1, 0.835_150_073_680_844_04),
            (2, 0.943_898_466_259_912_03),
            (3, 0.985_290_813_013_093_85),
            (4, 0.660_734_362_535_352_78),
            (26, 0.698_337_424_378_721_53),
            (27, 0.910_617_889_698_716_27),
            (28, 0.313_379_562_036_820_94),
        ];
        for (stream, want) in cases {
            let got = Mrg32k3a::stream(stream).draw();
            assert!((got - want).abs() < 1e-9, "stream {stream}: {got}");
        }
    }

    #[test]
    fn streams_follow_each_other() {
        assert_eq!(Mrg32k3a::stream(40).next_stream(), Mrg32k3a::stream(41));
        let first = Mrg32k3a::stream(0);
        assert_eq!(first.s1, [1_786_595_909, 1_318_450_546, 2_975_062_582]);
        assert_eq!(first.s2, [2_586_387_715, 1_104_109_601, 3_270_994_274]);
    }

    #[test]
    fn loss_stream_equals_ns3() {
        let mut generator = Mrg32k3a::stream((1 << 63) + 50);
        for want in [0.460_392_457_377_545_36, 0.056_660_465_380_497_47, 0.094_335_827_189_928_88] {
            let got = generator.draw();
            assert!((got - want).abs() < 1e-9, "{got}");
        }
    }
}
