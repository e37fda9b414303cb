//! Numbers as people read them.

/// No-break space that is narrow: between groups of digits, and before units.
const THIN: char = '\u{202f}';

/// A whole number with its digits in groups of three.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// Four digits that count, no trailing zeros behind the point.
pub(super) fn short(value: f64) -> String {
    let whole_digits = if value.abs() < 1.0 { 1 } else { value.abs().log10().floor() as usize + 1 };
    let text = format!("{value:.*}", 4usize.saturating_sub(whole_digits));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A unit and how much of the base unit it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Unit {
    /// Its symbol.
    pub(super) name: &'static str,
    size: f64,
}

const TIMES: [Unit; 4] = [unit("ns", 1.0), unit("µs", 1e3), unit("ms", 1e6), unit("s", 1e9)];
const SIZES: [Unit; 5] = [unit("B", 1.0), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9), unit("TB", 1e12)];
const COUNTS: [Unit; 5] = [unit("", 1.0), unit("k", 1e3), unit("M", 1e6), unit("G", 1e9), unit("T", 1e12)];

const fn unit(name: &'static str, size: f64) -> Unit {
    Unit { name, size }
}

impl Unit {
    /// The unit in which a number of nanoseconds is at least 1, if there is one.
    pub(super) fn of_time(ns: f64) -> Unit {
        best(&TIMES, ns)
    }

    /// How many of this unit.
    pub(super) fn of(&self, value: f64) -> f64 {
        value / self.size
    }

    /// In this unit, four digits at most.
    pub(super) fn short(&self, value: f64) -> String {
        short(value / self.size)
    }

    /// In this unit with three decimals, so that the numbers of a column stand one below the other.
    pub(super) fn aligned(&self, value: f64) -> String {
        format!("{:.3}", self.of(value))
    }
}

fn best(units: &[Unit], value: f64) -> Unit {
    *units.iter().rev().find(|unit| value.abs() >= unit.size).unwrap_or(&units[0])
}

fn with_unit(unit: Unit, value: f64) -> String {
    if unit.name.is_empty() { unit.short(value) } else { format!("{}{THIN}{}", unit.short(value), unit.name) }
}

/// A time in nanoseconds, with the unit that suits it.
pub(super) fn time(ns: f64) -> String {
    with_unit(best(&TIMES, ns), ns)
}

/// Bytes, with the unit that suits them.
pub(super) fn bytes(bytes: f64) -> String {
    with_unit(best(&SIZES, bytes), bytes)
}

/// A large number, with a letter for its thousands.
pub(super) fn large(number: f64) -> String {
    with_unit(best(&COUNTS, number), number)
}

/// A fraction, in percent.
pub(super) fn percent(fraction: f64) -> String {
    format!("{}{THIN}%", short(fraction * 100.0))
}

/// A fraction in percent with a fixed number of decimals.
pub(super) fn percent_aligned(fraction: f64) -> String {
    format!("{:.2}", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!(["0", "7", "1\u{202f}000", "12\u{202f}345\u{202f}678"], [0, 7, 1_000, 12_345_678].map(count)[..]);
        assert_eq!(["0.123", "1.5", "12.35", "123.5", "12346"], [0.123, 1.5, 12.346, 123.46, 12_345.6].map(short)[..]);
        assert_eq!((short(0.0), short(2_000.0)), ("0".into(), "2000".into()));
    }

    #[test]
    fn units_suit_their_numbers() {
        assert_eq!((time(999.0), time(1_500.0)), ("999\u{202f}ns".into(), "1.5\u{202f}µs".into()));
        assert_eq!((bytes(0.0), bytes(2.5e9)), ("0\u{202f}B".into(), "2.5\u{202f}GB".into()));
        assert_eq!((large(950.0), large(6.02e9)), ("950".into(), "6.02\u{202f}G".into()));
        assert_eq!((percent(0.1234), percent_aligned(0.1)), ("12.34\u{202f}%".into(), "10.00".into()));
    }
}
