//! Packed words: SPEC.md, section 6. Most words of a record are zero or small, and take one byte or less.

/// The largest word that is its own form.
const LITERAL_MAX: u64 = 0xde;
/// A byte follows: one zero word less than the run has.
const ZEROS: u8 = 0xdf;
/// Both halves of a word, each without its leading zero bytes.
const HALVES: u8 = 0xe0;
/// The low bytes of a word.
const LOW: u8 = 0xf0;
/// The high bytes of a word: floats with few digits end in zero bytes.
const HIGH: u8 = 0xf8;
/// A word of ones.
const ONES: u8 = 0xff;

/// Shorter runs of zeros are no longer as literals.
const RUN_MIN: usize = 3;
const RUN_MAX: usize = 256;

/// The longest form: a lead byte and the whole word.
const FORM_MAX: usize = 9;

/// What packs into one form: a word, or zeros in a row.
enum Run {
    Word(u64),
    Zeros(usize),
}

/// Calls `visit` with the runs that `words` are.
fn each_run(words: &[u64], mut visit: impl FnMut(Run)) {
    let mut rest = words;
    while let Some((word, tail)) = rest.split_first() {
        let zeros = rest.iter().take(RUN_MAX).take_while(|word| **word == 0).count();
        if zeros >= RUN_MIN {
            visit(Run::Zeros(zeros));
            rest = &rest[zeros..];
        } else {
            visit(Run::Word(*word));
            rest = tail;
        }
    }
}

/// Hands the packed form of `words` to `put`, piece by piece.
pub(crate) fn pack(words: &[u64], mut put: impl FnMut(&[u8])) {
    each_run(words, |run| match run {
        Run::Zeros(zeros) => put(&[ZEROS, (zeros - 1) as u8]),
        Run::Word(word) => {
            let (form, length) = form_of(word);
            put(&form[..length]);
        }
    });
}

/// Bytes of the packed form of `words`.
pub(crate) fn packed_len(words: &[u64]) -> usize {
    let mut length = 0;
    each_run(words, |run| {
        length += match run {
            Run::Zeros(_) => 2,
            Run::Word(word) => 1 + Shape::of(word).len(),
        }
    });
    length
}

/// What follows the lead byte of a word.
#[derive(Clone, Copy)]
enum Shape {
    /// Nothing: this lead byte is all.
    Lead(u8),
    /// So many low bytes.
    Low(usize),
    /// So many of the upper half, and of the lower.
    Halves(usize, usize),
    /// So many high bytes.
    High(usize),
}

impl Shape {
    /// The shortest; of several, the first.
    fn of(word: u64) -> Shape {
        match word {
            0..=LITERAL_MAX => Shape::Lead(word as u8),
            u64::MAX => Shape::Lead(ONES),
            _ => Shape::of_bytes(word),
        }
    }

    fn of_bytes(word: u64) -> Shape {
        let (upper, lower) = ((word >> 32) as u32, word as u32);
        let low = 8 - word.leading_zeros() as usize / 8;
        let high = 8 - word.trailing_zeros() as usize / 8;
        let upper_len = 4 - upper.leading_zeros() as usize / 8;
        let lower_len = 4 - lower.leading_zeros() as usize / 8;
        // With a half that is zero, one of the other forms is as short.
        let halves = if upper_len.min(lower_len) == 0 { usize::MAX } else { upper_len + lower_len };
        if low <= halves && low <= high {
            Shape::Low(low)
        } else if halves <= high {
            Shape::Halves(upper_len, lower_len)
        } else {
            Shape::High(high)
        }
    }

    fn len(self) -> usize {
        match self {
            Shape::Lead(_) => 0,
            Shape::Low(length) | Shape::High(length) => length,
            Shape::Halves(upper, lower) => upper + lower,
        }
    }
}

/// The shortest form of one word, and its length.
fn form_of(word: u64) -> ([u8; FORM_MAX], usize) {
    let (mut form, shape) = ([0; FORM_MAX], Shape::of(word));
    let (lead, body) = form.split_at_mut(1);
    match shape {
        Shape::Lead(byte) => lead[0] = byte,
        Shape::Low(low) => {
            lead[0] = LOW + low as u8 - 1;
            body[..low].copy_from_slice(&word.to_le_bytes()[..low]);
        }
        Shape::Halves(upper_len, lower_len) => {
            let (upper, lower) = ((word >> 32) as u32, word as u32);
            lead[0] = HALVES + ((upper_len as u8 - 1) << 2) + lower_len as u8 - 1;
            body[..upper_len].copy_from_slice(&upper.to_le_bytes()[..upper_len]);
            body[upper_len..upper_len + lower_len].copy_from_slice(&lower.to_le_bytes()[..lower_len]);
        }
        Shape::High(high) => {
            lead[0] = HIGH + high as u8 - 1;
            body[..high].copy_from_slice(&word.to_le_bytes()[8 - high..]);
        }
    }
    (form, 1 + shape.len())
}

/// A word, how many times it follows in a row, and the bytes after its form; `None` if `packed` ends within it.
fn take_run(packed: &[u8]) -> Option<(u64, usize, &[u8])> {
    let (&lead, rest) = packed.split_first()?;
    let (word, rest) = match lead {
        ZEROS => {
            let (&more, rest) = rest.split_first()?;
            return Some((0, more as usize + 1, rest));
        }
        HALVES..LOW => {
            let (upper, rest) = take_low(rest, ((lead - HALVES) >> 2) as usize + 1)?;
            let (lower, rest) = take_low(rest, (lead & 3) as usize + 1)?;
            (upper << 32 | lower, rest)
        }
        LOW..HIGH => take_low(rest, (lead - LOW) as usize + 1)?,
        HIGH..ONES => {
            let length = (lead - HIGH) as usize + 1;
            let (word, rest) = take_low(rest, length)?;
            (word << (64 - 8 * length), rest)
        }
        ONES => (u64::MAX, rest),
        literal => (literal as u64, rest),
    };
    Some((word, 1, rest))
}

/// The number in the next `length` bytes, at most eight.
fn take_low(bytes: &[u8], length: usize) -> Option<(u64, &[u8])> {
    let (low, rest) = bytes.split_at_checked(length)?;
    let mut word = [0; 8];
    word[..length].copy_from_slice(low);
    Some((u64::from_le_bytes(word), rest))
}

/// The words of a key or a value, unpacked one at a time from the bytes of the file.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    packed: &'a [u8],
    /// The word that comes next, `times` times, before those in `packed`.
    word: u64,
    times: usize,
    left: usize,
}

impl<'a> Words<'a> {
    /// `None` unless `packed` holds `count` words and nothing else.
    pub(crate) fn new(packed: &'a [u8], count: usize) -> Option<Words<'a>> {
        let (mut rest, mut left) = (packed, count);
        while !rest.is_empty() {
            let (_, times, tail) = take_run(rest)?;
            left = left.checked_sub(times)?;
            rest = tail;
        }
        (left == 0).then_some(Words { packed, word: 0, times: 0, left: count })
    }

    /// Words still to come. Known beforehand: nothing is unpacked for it.
    pub fn count_words(&self) -> usize {
        self.left
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.times == 0 {
            (self.word, self.times, self.packed) = take_run(self.packed)?;
        }
        self.times -= 1;
        self.left -= 1;
        Some(self.word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Words<'_> {}

impl core::iter::FusedIterator for Words<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packed form in a buffer, and its length.
    fn packed(words: &[u64]) -> ([u8; 4_096], usize) {
        let (mut bytes, mut length) = ([0; 4_096], 0);
        pack(words, |piece| {
            bytes[length..length + piece.len()].copy_from_slice(piece);
            length += piece.len();
        });
        (bytes, length)
    }

    fn comes_back(words: &[u64]) {
        let (bytes, length) = packed(words);
        assert_eq!(packed_len(words), length);
        let unpacked = Words::new(&bytes[..length], words.len()).expect("what was packed is sound");
        assert_eq!(unpacked.count_words(), words.len());
        assert!(unpacked.eq(words.iter().copied()), "{words:x?}");
    }

    #[test]
    fn every_form_has_the_bytes_of_the_specification() {
        let cases: [(&[u64], &[u8]); 16] = [
            (&[0xde], &[0xde]),
            (&[0, 0], &[0, 0]),
            (&[0, 0, 0], &[0xdf, 2]),
            (&[0xdf], &[0xf0, 0xdf]),
            (&[0x1234], &[0xf1, 0x34, 0x12]),
            (&[3 << 32 | 5], &[0xe0, 3, 5]),
            (&[0x0302_0100_0000_0504], &[0xed, 0, 1, 2, 3, 4, 5]),
            // Of equal length: low before halves, halves before high.
            (&[5 << 32 | 0x0100_0000], &[0xf4, 0, 0, 0, 1, 5]),
            (&[0x0001_0203_0001_0000], &[0xea, 3, 2, 1, 0, 0, 1]),
            (&[1.0f64.to_bits()], &[0xf9, 0xf0, 0x3f]),
            (&[(-2.0f64).to_bits()], &[0xf8, 0xc0]),
            (&[12.5e9f64.to_bits()], &[0xfc, 0xe8, 0x76, 0x48, 0x07, 0x42]),
            (&[0x0102_0304_0506_0708], &[0xf7, 8, 7, 6, 5, 4, 3, 2, 1]),
            (&[u64::MAX, u64::MAX], &[0xff, 0xff]),
            (&[0; 256], &[0xdf, 255]),
            (&[0; 259], &[0xdf, 255, 0xdf, 2]),
        ];
        for (words, bytes) in cases {
            let (form, length) = packed(words);
            assert_eq!(form[..length], *bytes, "{words:x?}");
            comes_back(words);
        }
    }

    #[test]
    fn words_around_every_edge_come_back_in_no_more_than_nine_bytes() {
        // An interpreter is slow.
        let step = if cfg!(miri) { 21 } else { 1 };
        for high in (0..64).step_by(step) {
            for low in (0..64).step_by(step) {
                for word in [1 << high | 1 << low, (1u64 << high).wrapping_sub(1 << low), !(1 << high | 1 << low)] {
                    comes_back(&[word]);
                    assert!(packed_len(&[word]) <= FORM_MAX);
                }
            }
        }
        for zeros in (0..600).step_by(7 * step - 6) {
            let mut words = [0; 602];
            words[0] = 7;
            words[zeros + 1] = u64::MAX;
            comes_back(&words[..zeros + 2]);
            comes_back(&words[1..zeros + 1]);
        }
    }

    /// A lead byte that is an inner edge of the table would be read as another form than it was written.
    #[test]
    fn every_lead_byte_is_one_form() {
        for lead in 0..=255 {
            let bytes = [lead, 1, 2, 3, 4, 5, 6, 7, 8];
            let (word, times, rest) = take_run(&bytes).unwrap();
            let used = bytes.len() - rest.len();
            assert!((0..used).all(|end| take_run(&bytes[..end]).is_none()), "{lead:#x}");
            if times == 1 {
                let (form, length) = form_of(word);
                assert!(length <= used && take_run(&form[..length]).unwrap().0 == word, "{lead:#x}");
            }
        }
    }

    #[test]
    fn counts_that_lie_are_refused() {
        assert!(Words::new(&[], 0).is_some_and(|mut words| words.next().is_none()));
        for (packed, count) in [(&[1u8, 2][..], 2), (&[0xdf, 4], 5), (&[0xdf, 4, 9], 6)] {
            assert!(Words::new(packed, count).is_some());
            for wrong in [0, count - 1, count + 1, usize::MAX] {
                assert!(Words::new(packed, wrong).is_none(), "{packed:?} as {wrong} words");
            }
        }
        assert!(Words::new(&[0xdf], 1).is_none() && Words::new(&[0xf7, 1], 1).is_none());
    }
}
