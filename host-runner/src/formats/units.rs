//! Single values: rates, times, sizes, probabilities.
//!
//! Decimal text becomes an integer in decimal arithmetic, so `3.33us` is 3,330,000 ps and `0.1Tbps` is
//! 100,000,000,000 bit/s, with no binary fraction between. What is finer than the unit is rounded to the nearest,
//! halves up. The first 24 significant digits count.

use thiserror::Error;

/// Why a token is not the value that was expected. Does not repeat the token: whoever reports it names it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum UnitError {
    /// Does not begin with a decimal number. NaN and infinities are none.
    #[error("not a decimal number")]
    NotANumber,
    /// Below zero.
    #[error("negative")]
    Negative,
    /// A unit that is not known, or not of this kind of value.
    #[error("unknown unit {unit:?}; known are {known}")]
    UnknownUnit {
        /// What follows the number.
        unit: String,
        /// What could follow.
        known: &'static str,
    },
    /// Does not fit 64 bits in the unit it is kept in.
    #[error("too large")]
    TooLarge,
    /// Zero where that makes no sense.
    #[error("must not be zero")]
    Zero,
    /// A fraction of something indivisible.
    #[error("not a whole number")]
    Fraction,
    /// Not in 0 to 1.
    #[error("not between 0 and 1")]
    NotAProbability,
}

const RATE_UNITS: &str = "bps, b/s, Bps, B/s with k, M, G, T, Ki, Mi, Gi, Ti";
const TIME_UNITS: &str = "s, ms, us, ns, ps, fs";
const BYTE_UNITS: &str = "B with k, M, G, T, Ki, Mi, Gi, Ti";

/// Decimal digits that are kept. The largest product with a unit, 10^24 * 8 * 2^40, fits 128 bits.
const MAX_DIGITS: u32 = 24;

/// Reads a rate: a number and a unit as ns-3 knows them (`100Gbps`, `1000Mb/s`, `12.5GB/s`), or a number alone, in
/// bit/s (`25000000000.0`). Letters count: `b` is a bit, `B` a byte.
///
/// Returns bit/s, at least 1.
///
/// # Errors
/// [`UnitError`], also for a rate of zero.
pub fn parse_rate(token: &str) -> Result<u64, UnitError> {
    match parse_rate_or_zero(token)? {
        0 => Err(UnitError::Zero),
        rate => Ok(rate),
    }
}

/// Reads a change of a rate, which unlike a rate may be zero. Returns bit/s.
///
/// # Errors
/// [`UnitError`].
pub fn parse_rate_or_zero(token: &str) -> Result<u64, UnitError> {
    let number = Number::read(token)?;
    let unknown = || UnitError::UnknownUnit { unit: number.unit.to_owned(), known: RATE_UNITS };
    let (prefix, bits) = match number.unit {
        "" => ("", 1),
        unit => ["bps", "b/s", "Bps", "B/s"]
            .into_iter()
            .find_map(|base| Some((unit.strip_suffix(base)?, if base.starts_with('B') { 8 } else { 1 })))
            .ok_or_else(unknown)?,
    };
    let (factor, power) = prefix_of(prefix).ok_or_else(unknown)?;
    Ok(number.scaled(bits * factor, power)?.0)
}

/// Reads a delay: a number and `s`, `ms`, `us`, `ns`, `ps` or `fs`, or a number alone, in seconds.
///
/// Returns picoseconds.
///
/// # Errors
/// [`UnitError`].
pub fn parse_delay(token: &str) -> Result<u64, UnitError> {
    let number = Number::read(token)?;
    let power = match number.unit {
        "" | "s" => 12,
        "ms" => 9,
        "us" => 6,
        "ns" => 3,
        "ps" => 0,
        "fs" => -3,
        unit => return Err(UnitError::UnknownUnit { unit: unit.to_owned(), known: TIME_UNITS }),
    };
    Ok(number.scaled(1, power)?.0)
}

/// Reads a number of seconds without a unit. Returns picoseconds.
///
/// # Errors
/// [`UnitError`].
pub fn parse_seconds(token: &str) -> Result<u64, UnitError> {
    parse_power(token, 12)
}

/// Reads a number of microseconds without a unit. Returns picoseconds.
///
/// # Errors
/// [`UnitError`].
pub fn parse_micros(token: &str) -> Result<u64, UnitError> {
    parse_power(token, 6)
}

fn parse_power(token: &str, power: i64) -> Result<u64, UnitError> {
    Ok(Number::read(token)?.without_unit()?.scaled(1, power)?.0)
}

/// Reads a number of bytes, alone or with `B`, `kB`, `MiB` and so on. `1e6` and `4490.0` are whole numbers.
///
/// # Errors
/// [`UnitError`]; a part of a byte is [`UnitError::Fraction`].
pub fn parse_bytes(token: &str) -> Result<u64, UnitError> {
    let number = Number::read(token)?;
    let prefix = if number.unit.is_empty() { Some("") } else { number.unit.strip_suffix('B') };
    let unknown = || UnitError::UnknownUnit { unit: number.unit.to_owned(), known: BYTE_UNITS };
    let (factor, power) = prefix.and_then(prefix_of).ok_or_else(unknown)?;
    number.whole(factor, power)
}

/// Reads a number of KB (1000 bytes) without a unit. Returns bytes.
///
/// # Errors
/// [`UnitError`]; a part of a byte is [`UnitError::Fraction`].
pub fn parse_kilobytes(token: &str) -> Result<u64, UnitError> {
    Number::read(token)?.without_unit()?.whole(1, 3)
}

/// Reads a number of MiB without a unit. Returns bytes.
///
/// # Errors
/// [`UnitError`]; a part of a byte is [`UnitError::Fraction`].
pub fn parse_mebibytes(token: &str) -> Result<u64, UnitError> {
    Number::read(token)?.without_unit()?.whole(1 << 20, 0)
}

/// Reads a probability.
///
/// # Errors
/// [`UnitError`]; outside 0 to 1 it is [`UnitError::NotAProbability`].
pub fn parse_probability(token: &str) -> Result<f64, UnitError> {
    let value = parse_real(token)?;
    if value <= 1.0 { Ok(value) } else { Err(UnitError::NotAProbability) }
}

/// Reads a number that is finite and not negative, to the nearest double, as ns-3 does.
///
/// # Errors
/// [`UnitError`].
pub fn parse_real(token: &str) -> Result<f64, UnitError> {
    Number::read(token)?.without_unit()?;
    let value: f64 = token.parse().map_err(|_| UnitError::NotANumber)?;
    if value.is_finite() { Ok(value) } else { Err(UnitError::TooLarge) }
}

/// A rate in bit/s as a token that [`parse_rate`] and ns-3 read back exactly: `100Gbps`.
pub fn format_rate(bps: u64) -> String {
    with_unit(bps, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")])
}

/// A delay in picoseconds as a token that [`parse_delay`] reads back exactly: `1us`.
pub fn format_delay(ps: u64) -> String {
    with_unit(ps, &[(1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")])
}

/// In the first unit that divides the value.
fn with_unit(value: u64, units: &[(u64, &str)]) -> String {
    let unit = units.iter().find(|(size, _)| value.is_multiple_of(*size));
    unit.map_or_else(|| value.to_string(), |(size, name)| format!("{}{name}", value / size))
}

/// `factor * 10^power` of an SI or binary prefix.
fn prefix_of(prefix: &str) -> Option<(u64, i64)> {
    Some(match prefix {
        "" => (1, 0),
        "k" | "K" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        _ => return None,
    })
}

/// `mantissa * 10^exponent`, and what follows it in the token.
struct Number<'a> {
    /// Below 10^[`MAX_DIGITS`].
    mantissa: u128,
    exponent: i64,
    /// Whether there were more digits, not all zero.
    cut: bool,
    unit: &'a str,
}

impl<'a> Number<'a> {
    /// `[+]digits[.digits][e[+|-]digits]unit`, with at least one digit before the exponent.
    fn read(token: &'a str) -> Result<Number<'a>, UnitError> {
        if token.starts_with('-') {
            return Err(UnitError::Negative);
        }
        let text = token.strip_prefix('+').unwrap_or(token);
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", rest),
        };
        if whole.len() + fraction.len() == 0 {
            return Err(UnitError::NotANumber);
        }
        let (exponent, unit) = split_exponent(rest);
        let mut number = Number { mantissa: 0, exponent, cut: false, unit };
        whole.bytes().for_each(|digit| number.push(digit, false));
        fraction.bytes().for_each(|digit| number.push(digit, true));
        Ok(number)
    }

    fn push(&mut self, digit: u8, in_fraction: bool) {
        let digit = u128::from(digit - b'0');
        let full = self.mantissa >= 10u128.pow(MAX_DIGITS - 1);
        if full {
            self.cut |= digit != 0;
        } else {
            self.mantissa = self.mantissa * 10 + digit;
        }
        // A digit of the whole that is cut, or one of the fraction that is kept, moves the point.
        self.exponent += i64::from(full) - i64::from(in_fraction);
    }

    fn without_unit(self) -> Result<Number<'a>, UnitError> {
        match self.unit {
            "" => Ok(self),
            unit => Err(UnitError::UnknownUnit { unit: unit.to_owned(), known: "none: a number alone" }),
        }
    }

    /// The number times `factor * 10^power`, to the nearest, and whether that is exact.
    fn scaled(&self, factor: u64, power: i64) -> Result<(u64, bool), UnitError> {
        let too_large = UnitError::TooLarge;
        let product = self.mantissa * u128::from(factor);
        let power = self.exponent + power;
        if product == 0 {
            return Ok((0, true));
        }
        if power >= 0 {
            let scale = u32::try_from(power).ok().and_then(|p| 10u128.checked_pow(p)).ok_or(UnitError::TooLarge)?;
            let value = product.checked_mul(scale).and_then(|v| u64::try_from(v).ok()).ok_or(too_large)?;
            return Ok((value, !self.cut));
        }
        // A product has at most 37 digits: divided by more than 10^38 it is nearest to 0.
        let Some(divisor) = u32::try_from(-power).ok().and_then(|p| 10u128.checked_pow(p)) else {
            return Ok((0, false));
        };
        let (quotient, rest) = (product / divisor, product % divisor);
        let rounded = quotient + u128::from(rest >= divisor - rest);
        Ok((u64::try_from(rounded).map_err(|_| too_large)?, rest == 0 && !self.cut))
    }

    fn whole(&self, factor: u64, power: i64) -> Result<u64, UnitError> {
        match self.scaled(factor, power)? {
            (value, true) => Ok(value),
            (_, false) => Err(UnitError::Fraction),
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len()))
}

/// The exponent, 0 if there is none, and what follows it.
fn split_exponent(text: &str) -> (i64, &str) {
    let Some(after) = text.strip_prefix(['e', 'E']) else { return (0, text) };
    let (sign, digits) = match after.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, after.strip_prefix('+').unwrap_or(after)),
    };
    let (digits, rest) = split_digits(digits);
    if digits.is_empty() {
        return (0, text);
    }
    // More than this is out of every range, and sums with it cannot overflow.
    const BEYOND: i64 = 1 << 48;
    (sign * digits.parse().unwrap_or(BEYOND).min(BEYOND), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (token, bps) in [
            ("100Gbps", 100_000_000_000),
            ("100Gb/s", 100_000_000_000),
            ("100000Mbps", 100_000_000_000),
            ("0.1Tbps", 100_000_000_000),
            ("25000000000.0", 25_000_000_000),
            ("2.5e10", 25_000_000_000),
            ("1000Mb/s", 1_000_000_000),
            ("64kbps", 64_000),
            ("64Kbps", 64_000),
            ("2880Gbps", 2_880_000_000_000),
            ("12.5GB/s", 100_000_000_000),
            ("1GBps", 8_000_000_000),
            ("1Kib/s", 1_024),
            ("1KiB/s", 8_192),
            ("9bps", 9),
            ("9b/s", 9),
            ("0.5", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_rate(token), Ok(bps), "{token}");
        }
    }

    #[test]
    fn delays() {
        for (token, ps) in [
            ("1us", 1_000_000),
            ("0.001ms", 1_000_000),
            ("1000ns", 1_000_000),
            ("1000000ps", 1_000_000),
            ("1e-6s", 1_000_000),
            ("1E-6", 1_000_000),
            ("1.e-6s", 1_000_000),
            (".000001s", 1_000_000),
            ("+1us", 1_000_000),
            ("3.33us", 3_330_000),
            ("0.000025ms", 25_000),
            ("0.0005ms", 500_000),
            ("0.5ps", 1),
            ("0.4999999999999999999999999999999ps", 0),
            ("1499fs", 1),
            ("1500fs", 2),
            ("1e-400", 0),
            ("0e99999999999999999999", 0),
            ("0", 0),
            ("2", 2_000_000_000_000),
            ("0.00000000000100000000000000000000000000000000000000000000000000000000001", 1),
            ("18446744.073709551615", u64::MAX),
            ("18446744.0737095516154999", u64::MAX),
        ] {
            assert_eq!(parse_delay(token), Ok(ps), "{token}");
        }
        assert_eq!(parse_micros("500"), Ok(500_000_000));
        assert_eq!(parse_micros("0.25"), Ok(250_000));
        assert_eq!(parse_seconds("2.0002"), Ok(2_000_200_000_000));
    }

    #[test]
    fn sizes() {
        for (token, bytes) in [
            ("5368709120", 5_368_709_120),
            ("4490.0", 4_490),
            ("1e6", 1_000_000),
            ("1.5kB", 1_500),
            ("64MiB", 64 << 20),
            ("7B", 7),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(token), Ok(bytes), "{token}");
        }
        assert_eq!(parse_bytes("4490.5"), Err(UnitError::Fraction));
        assert_eq!(parse_bytes("1.00000000000000000000000000000000001"), Err(UnitError::Fraction));
        assert_eq!(parse_mebibytes("0.5"), Ok(1 << 19));
        assert_eq!(parse_kilobytes("12.5"), Ok(12_500));
        assert_eq!(parse_kilobytes("0.0001"), Err(UnitError::Fraction));
    }

    #[test]
    fn probabilities() {
        assert_eq!(parse_probability("0.000000"), Ok(0.0));
        assert_eq!(parse_probability("0.001"), Ok(0.001));
        assert_eq!(parse_probability("1"), Ok(1.0));
        assert_eq!(parse_probability("1.0001"), Err(UnitError::NotAProbability));
        assert_eq!(parse_probability("-0.1"), Err(UnitError::Negative));
        assert_eq!(parse_probability("1e400"), Err(UnitError::TooLarge));
        assert_eq!(parse_probability("nan"), Err(UnitError::NotANumber));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for token in ["", ".", "x", "nan", "NaN", "inf", "infinity", "e5", "+", "Gbps", "++1", "\u{fffd}"] {
            assert_eq!(parse_rate(token), Err(UnitError::NotANumber), "{token}");
            assert_eq!(parse_delay(token), Err(UnitError::NotANumber), "{token}");
            assert_eq!(parse_bytes(token), Err(UnitError::NotANumber), "{token}");
            assert_eq!(parse_real(token), Err(UnitError::NotANumber), "{token}");
        }
        for token in ["-1Gbps", "-0.5us", "-inf"] {
            assert_eq!(parse_rate(token), Err(UnitError::Negative), "{token}");
            assert_eq!(parse_delay(token), Err(UnitError::Negative), "{token}");
        }
        for token in ["1e30", "18446744073709551616", "1e99999999999999999999", "99999999999999999999999999999999"] {
            assert_eq!(parse_rate(token), Err(UnitError::TooLarge), "{token}");
            assert_eq!(parse_delay(token), Err(UnitError::TooLarge), "{token}");
            assert_eq!(parse_bytes(token), Err(UnitError::TooLarge), "{token}");
        }
        for token in ["0", "0Gbps", "0.4bps", "1e-50"] {
            assert_eq!(parse_rate(token), Err(UnitError::Zero), "{token}");
        }
        assert_eq!(parse_rate_or_zero("0Mb/s"), Ok(0));
    }

    #[test]
    fn unknown_units_are_named() {
        let unit = |error| match error {
            UnitError::UnknownUnit { unit, .. } => unit,
            other => panic!("{other}"),
        };
        for (token, named) in [("100Gbpz", "Gbpz"), ("1gbps", "gbps"), ("1us", "us"), ("1.2.3", ".3"), ("1e", "e")] {
            assert_eq!(unit(parse_rate(token).unwrap_err()), named);
        }
        for (token, named) in [("1usec", "usec"), ("1Gbps", "Gbps"), ("0x10", "x10"), ("1µs", "µs")] {
            assert_eq!(unit(parse_delay(token).unwrap_err()), named);
        }
        assert_eq!(unit(parse_micros("1us").unwrap_err()), "us");
        assert_eq!(unit(parse_bytes("1KiBs").unwrap_err()), "KiBs");
        assert!(parse_rate("1x").unwrap_err().to_string().starts_with("unknown unit \"x\"; known are bps"));
    }

    #[test]
    fn formatted_values_read_back() {
        for (bps, token) in [(100_000_000_000, "100Gbps"), (2_500_000_000, "2500Mbps"), (1, "1bps"), (1_001, "1001bps")]
        {
            assert_eq!(format_rate(bps), token);
            assert_eq!(parse_rate(token), Ok(bps));
        }
        for (ps, token) in [(3_330_000, "3330ns"), (1_000_000, "1us"), (25_000, "25ns"), (1, "1ps"), (0, "0ms")] {
            assert_eq!(format_delay(ps), token);
            assert_eq!(parse_delay(token), Ok(ps));
        }
    }
}
