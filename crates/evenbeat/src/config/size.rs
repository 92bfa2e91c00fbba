//! Sizes in bytes: `10MiB`, `512KiB`, `1GB`, `4096`.

use std::fmt;
use std::str::FromStr;

use evenbeat_core::nearest::shortened;

/// Units and their bytes. A size is printed in the first unit that divides it.
const UNITS: [(&str, u64); 8] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
];

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteSize(pub(super) u64);

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size (write `512KiB`, `10MiB` or `2GiB`)")]
pub(super) struct SizeError {
    text: String,
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<ByteSize, SizeError> {
        let refused = || SizeError { text: shortened(text) };
        let written = text.trim();
        let unit_at = written.find(|it: char| !it.is_ascii_digit()).unwrap_or(written.len());
        let (number, unit) = written.split_at(unit_at);
        let number: u64 = number.parse().map_err(|_| refused())?;
        let unit = unit.trim();
        let bytes = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((_, bytes)) => *bytes,
            None if unit.is_empty() || unit == "B" => 1,
            None => return Err(refused()),
        };
        // Sizes are stored and shown as signed numbers.
        let total = number.checked_mul(bytes).filter(|total| i64::try_from(*total).is_ok());
        total.map(ByteSize).ok_or_else(refused)
    }
}

/// The shortest exact form.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, bytes)| 0 < self.0 && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let size = text.parse::<ByteSize>();
        assert_eq!(size.map_or_else(|error| error.to_string(), |it| format!("{} {it}", it.0)), expected);
    }

    #[test]
    fn sizes_have_units() {
        check("10MiB", "10485760 10MiB");
        check("512 KiB", "524288 512KiB");
        check("2gib", "2147483648 2GiB");
        check("5MB", "5000000 5MB");
        check("1000kB", "1000000 1MB");
        check("4096", "4096 4KiB");
        check("7B", "7 7B");
        check("0", "0 0B");
        check("2048KiB", "2097152 2MiB");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "MiB", "10 apples", "1.5MiB", "-1", "99999999999TiB", "9223372036854775808", "10 Mi B"]
        {
            check(text, &format!("`{text}` is not a size (write `512KiB`, `10MiB` or `2GiB`)"));
        }
    }
}
