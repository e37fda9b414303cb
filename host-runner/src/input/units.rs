//! Quantities with units, read exactly: no float stands between the text and the integer.

/// A decimal number: `digits * 10^exponent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

/// Splits a token into its number and its unit.
fn split_unit(token: &str) -> (&str, &str) {
    let bytes = token.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let exponent =
            matches!(bytes[end], b'e' | b'E') && matches!(bytes.get(end + 1), Some(b'0'..=b'9' | b'-' | b'+'));
        let sign = matches!(bytes[end], b'+' | b'-') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        if !(bytes[end].is_ascii_digit() || bytes[end] == b'.' || exponent || sign) {
            break;
        }
        end += 1;
    }
    token.split_at(end)
}

impl Decimal {
    fn parse(text: &str) -> Result<Decimal, String> {
        let bad = || format!("`{text}` is not a number");
        if text.starts_with('-') {
            return Err("must not be negative".into());
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| bad())?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: String = whole.trim_start_matches('+').chars().chain(fraction.chars()).collect();
        if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let significant = all.trim_start_matches('0');
        let digits = if significant.is_empty() { 0 } else { significant.parse().map_err(|_| "too many digits")? };
        let exponent = exponent.checked_sub(fraction.len() as i32).ok_or_else(bad)?;
        Ok(Decimal { digits, exponent })
    }

    /// The number times `10^power`, to the nearest whole.
    fn scaled(self, power: i32) -> Result<u64, String> {
        let too_large = || "too large".to_owned();
        let power = self.exponent.saturating_add(power);
        if self.digits == 0 {
            return Ok(0);
        }
        let value = match u32::try_from(power) {
            Ok(power) => 10u128.checked_pow(power).and_then(|p| self.digits.checked_mul(p)).ok_or_else(too_large)?,
            Err(_) => match 10u128.checked_pow(power.unsigned_abs()) {
                Some(divisor) => self.digits.saturating_add(divisor / 2) / divisor,
                None => 0,
            },
        };
        u64::try_from(value).map_err(|_| too_large())
    }
}

/// A rate in bit/s: `100Gbps`, `100Gb/s`, `40Mbps`, `0.1Tbps`, or a bare number of bit/s. Never 0.
///
/// # Errors
/// What was expected instead.
pub fn rate(token: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(token);
    let prefix = unit.strip_suffix("bps").or_else(|| unit.strip_suffix("b/s")).unwrap_or(unit);
    let power = match (prefix, unit) {
        ("", _) => 0,
        ("k" | "K", u) if u.len() > 1 => 3,
        ("M", u) if u.len() > 1 => 6,
        ("G", u) if u.len() > 1 => 9,
        ("T", u) if u.len() > 1 => 12,
        _ => return Err("a rate needs one of the units bps, kbps, Mbps, Gbps, Tbps (or b/s)".into()),
    };
    match Decimal::parse(number)?.scaled(power)? {
        0 => Err("a rate must not be 0".into()),
        rate => Ok(rate),
    }
}

/// A time in picoseconds: `1us`, `0.001ms`, `3.33us`, `1000ps`, `1e-6s`, or a bare number of seconds; rounded to the
/// nearest picosecond.
///
/// # Errors
/// What was expected instead.
pub fn time(token: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(token);
    let power = match unit {
        "" | "s" => 12,
        "ms" => 9,
        "us" => 6,
        "ns" => 3,
        "ps" => 0,
        _ => return Err("a time needs one of the units s, ms, us, ns, ps".into()),
    };
    Decimal::parse(number)?.scaled(power)
}

/// A time given as a bare number of microseconds, in picoseconds.
///
/// # Errors
/// What was expected instead.
pub fn microseconds(token: &str) -> Result<u64, String> {
    Decimal::parse(token)?.scaled(6)
}

/// A probability between 0 and 1.
///
/// # Errors
/// What was expected instead.
pub fn probability(token: &str) -> Result<f64, String> {
    match token.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("a probability lies between 0 and 1".into()),
    }
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
        for token in ["", "Gbps", "100G", "100GBps", "100 Gbps", "-1Gbps", "0Gbps", "1e99Gbps", "nan", "1.2.3Gbps"] {
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
        ] {
            assert_eq!(time(token), Ok(want), "{token}");
        }
        for token in ["", "us", "1m", "1e20s", "-3us", "inf", "0x10ns", "1e999999999999s"] {
            assert!(time(token).is_err(), "{token}");
        }
    }

    #[test]
    fn probabilities_are_between_0_and_1() {
        assert_eq!(probability("0.000000"), Ok(0.0));
        assert!(["-0.1", "1.1", "NaN", "x"].iter().all(|t| probability(t).is_err()));
    }
}
