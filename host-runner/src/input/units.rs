//! Quantities with units, read exactly: no float stands between the text and the integer.
//!
//! What is finer than the unit is rounded to the nearest, halves up.

/// Significant digits that are kept; 64 bits have 20.
const MAX_DIGITS: u32 = 30;

/// `mantissa * 10^exponent`, and what follows it in the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decimal<'t> {
    /// The first [`MAX_DIGITS`] significant digits. The others cannot change a rounded value: they are less than one
    /// of the last digit kept, and a half is a whole number of those.
    mantissa: u128,
    exponent: i64,
    unit: &'t str,
}

impl<'t> Decimal<'t> {
    /// `[+]digits[.digits][e[+|-]digits]unit`, with at least one digit before the exponent.
    fn read(token: &'t str) -> Result<Decimal<'t>, String> {
        if token.starts_with('-') {
            return Err("must not be negative".into());
        }
        let (whole, rest) = split_digits(token.strip_prefix('+').unwrap_or(token));
        let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.len() + fraction.len() == 0 {
            return Err("not a decimal number".into());
        }
        let (exponent, unit) = split_exponent(rest);
        let mut decimal = Decimal { mantissa: 0, exponent, unit };
        whole.bytes().for_each(|digit| decimal.push(digit, false));
        fraction.bytes().for_each(|digit| decimal.push(digit, true));
        Ok(decimal)
    }

    fn push(&mut self, digit: u8, in_fraction: bool) {
        let full = self.mantissa >= 10u128.pow(MAX_DIGITS - 1);
        if !full {
            self.mantissa = self.mantissa * 10 + u128::from(digit - b'0');
        }
        // A digit of the whole that is cut, or one of the fraction that is kept, moves the point.
        self.exponent += i64::from(full) - i64::from(in_fraction);
    }

    /// The number times `10^power`, to the nearest whole.
    fn scaled(self, power: i64) -> Result<u64, String> {
        let power = self.exponent + power;
        if self.mantissa == 0 {
            return Ok(0);
        }
        let scale = u32::try_from(power.unsigned_abs()).ok().and_then(|p| 10u128.checked_pow(p));
        let value = match scale {
            Some(scale) if power >= 0 => self.mantissa.checked_mul(scale),
            Some(divisor) => {
                let (quotient, rest) = (self.mantissa / divisor, self.mantissa % divisor);
                Some(quotient + u128::from(rest >= divisor - rest))
            }
            None if power >= 0 => None,
            // 30 digits divided by more than 10^38 are nearest to 0.
            None => Some(0),
        };
        value.and_then(|v| u64::try_from(v).ok()).ok_or_else(|| "too large".into())
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

/// A rate in bit/s: `100Gbps`, `100Gb/s`, `40Mbps`, `0.1Tbps`, or a bare number of bit/s. Never 0.
///
/// # Errors
/// What was expected instead.
pub fn rate(token: &str) -> Result<u64, String> {
    match rate_or_zero(token)? {
        0 => Err("a rate must not be 0".into()),
        rate => Ok(rate),
    }
}

/// A change of a rate, which unlike a rate may be 0.
///
/// # Errors
/// What was expected instead.
pub fn rate_or_zero(token: &str) -> Result<u64, String> {
    let decimal = Decimal::read(token)?;
    let unit = decimal.unit;
    let power = match unit.strip_suffix("bps").or_else(|| unit.strip_suffix("b/s")) {
        None if unit.is_empty() => 0,
        Some("") => 0,
        Some("k" | "K") => 3,
        Some("M") => 6,
        Some("G") => 9,
        Some("T") => 12,
        _ => return Err("a rate needs one of the units bps, kbps, Mbps, Gbps, Tbps (or b/s)".into()),
    };
    decimal.scaled(power)
}

/// A time in picoseconds: `1us`, `0.001ms`, `3.33us`, `1000ps`, `1e-6s`, or a bare number of seconds; rounded to the
/// nearest picosecond.
///
/// # Errors
/// What was expected instead.
pub fn time(token: &str) -> Result<u64, String> {
    let decimal = Decimal::read(token)?;
    let power = match decimal.unit {
        "" | "s" => 12,
        "ms" => 9,
        "us" => 6,
        "ns" => 3,
        "ps" => 0,
        _ => return Err("a time needs one of the units s, ms, us, ns, ps".into()),
    };
    decimal.scaled(power)
}

/// A time given as a bare number of microseconds, in picoseconds.
///
/// # Errors
/// What was expected instead.
pub fn microseconds(token: &str) -> Result<u64, String> {
    let decimal = Decimal::read(token)?;
    if decimal.unit.is_empty() { decimal.scaled(6) } else { Err("expected microseconds, without a unit".into()) }
}

/// A probability between 0 and 1.
///
/// # Errors
/// What was expected instead.
pub fn probability(token: &str) -> Result<f64, String> {
    match token.parse::<f64>() {
        // `-0` lies in the range, too, and is 0.
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p.abs()),
        _ => Err("a probability lies between 0 and 1".into()),
    }
}

/// A rate as a token that [`rate`] and ns-3 read back exactly: `100Gbps`.
pub fn format_rate(bits_per_second: u64) -> String {
    with_unit(bits_per_second, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")])
}

/// A time as a token that [`time`] and ns-3 read back exactly: `1us`.
pub fn format_time(picoseconds: u64) -> String {
    with_unit(picoseconds, &[(1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")])
}

/// In the first unit that divides the value.
fn with_unit(value: u64, units: &[(u64, &str)]) -> String {
    let unit = units.iter().find(|(size, _)| value.is_multiple_of(*size));
    unit.map_or_else(|| value.to_string(), |(size, name)| format!("{}{name}", value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_in_every_spelling() {
        for (token, want) in [
            ("25000000000.0", 25_000_000_000),
            ("100Gbps", 100_000_000_000),
            ("100Gb/s", 100_000_000_000),
            ("0.1Tbps", 100_000_000_000),
            ("100000Mbps", 100_000_000_000),
            ("20Mb/s", 20_000_000),
            ("1kbps", 1_000),
            ("2.88e3Gbps", 2_880_000_000_000),
            ("9bps", 9),
        ] {
            assert_eq!(rate(token), Ok(want), "{token}");
        }
        for token in
            ["", "Gbps", "100G", "100GBps", "100 Gbps", "-1Gbps", "0Gbps", "1e99Gbps", "nan", "1.2.3Gbps", "1e"]
        {
            assert!(rate(token).is_err(), "{token}");
        }
    }

    #[test]
    fn times_are_exact() {
        for (token, want) in [
            ("1us", 1_000_000),
            ("0.001ms", 1_000_000),
            ("1000ns", 1_000_000),
            ("1000000ps", 1_000_000),
            ("1e-6s", 1_000_000),
            ("3.33us", 3_330_000),
            ("0.000025ms", 25_000),
            ("2.000000000", 2_000_000_000_000),
            ("0.0004ns", 0),
            ("0.0006ns", 1),
            ("1e-400s", 0),
            ("0e99999999999999999999", 0),
            (".5ps", 1),
            ("+1us", 1_000_000),
            ("18446744.0737095516154999", u64::MAX),
        ] {
            assert_eq!(time(token), Ok(want), "{token}");
        }
        for token in
            ["", "us", "1m", "1e20s", "-3us", "inf", "0x10ns", "1e999999999999s", "18446744.0737095516155", "e5", "."]
        {
            assert!(time(token).is_err(), "{token}");
        }
    }

    #[test]
    fn long_decimals_are_rounded_to_the_nearest() {
        assert_eq!(rate("0.1000000000000000055511151231257827021181583404541015625Tbps"), Ok(100_000_000_000));
        for (token, want) in [
            ("0.0000010000000000000000000000000000000000000000001s", 1_000_000),
            ("0.49999999999999999999999999999999999999999999999999ps", 0),
            ("0.50000000000000000000000000000000000000000000000000ps", 1),
            ("1.49999999999999999999999999999999999999999999999999ps", 1),
            ("1.5000000000000000000000000000000000000000000000001ps", 2),
            ("340282366920938463463374607431768211455e-32", 3_402_823_669_209_384_635),
            ("0.00000000000100000000000000000000000000000000000000000000000000000000001", 1),
        ] {
            assert_eq!(time(token), Ok(want), "{token}");
        }
        assert_eq!(time(&"9".repeat(50)), Err("too large".into()));
    }

    #[test]
    fn probabilities_are_between_0_and_1() {
        assert_eq!(probability("0.000000"), Ok(0.0));
        assert!(probability("-0").unwrap().is_sign_positive());
        assert!(["-0.1", "1.1", "NaN", "inf", "x", ""].iter().all(|t| probability(t).is_err()));
    }

    #[test]
    fn changes_of_rates_may_be_0() {
        assert_eq!(rate_or_zero("0Mb/s"), Ok(0));
        assert!(rate_or_zero("-1Mb/s").is_err());
        assert_eq!(microseconds("0.25"), Ok(250_000));
        assert!(microseconds("1us").is_err());
    }

    #[test]
    fn formatted_values_read_back() {
        for (value, token) in [(100_000_000_000, "100Gbps"), (2_500_000_000, "2500Mbps"), (1_001, "1001bps")] {
            assert_eq!((format_rate(value).as_str(), rate(token)), (token, Ok(value)));
        }
        for (value, token) in [(3_330_000, "3330ns"), (1_000_000, "1us"), (25_001, "25001ps"), (0, "0ms")] {
            assert_eq!((format_time(value).as_str(), time(token)), (token, Ok(value)));
        }
    }
}
