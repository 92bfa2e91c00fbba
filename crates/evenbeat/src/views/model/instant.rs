//! Instants and lengths of time as texts.

use std::fmt;

use evenbeat_core::time::{Duration, DurationError, Timestamp};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// An instant in RFC 3339. Answers use UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-02-04T10:15:00Z"))]
pub struct Instant(pub Timestamp);

/// A length of time, such as `1h30m` or `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(as = Duration, value_type = String, examples("1h30m", "250ms"))]
pub struct Length(pub Duration);

/// A length in seconds, for those who compute with it.
pub fn seconds(length: Duration) -> f64 {
    length.as_millis_f64() / 1_000.0
}

macro_rules! as_text {
    ($($type:ident($inner:ty), $read:expr;)*) => {$(
        impl From<$inner> for $type {
            fn from(it: $inner) -> $type {
                $type(it)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = String::deserialize(deserializer)?;
                $read(&text).map($type).map_err(D::Error::custom)
            }
        }
    )*};
}

as_text! {
    Instant(Timestamp), str::parse::<Timestamp>;
    Length(Duration), length;
}

/// Measured lengths may be zero, or negative after a clock step; people never write those.
fn length(text: &str) -> Result<Duration, DurationError> {
    match text.strip_prefix('-') {
        Some(rest) => length(rest).map(|it| -it),
        None if text == "0s" => Ok(Duration::ZERO),
        None => text.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_measured_is_read_back() {
        for millis in [0, 1, -1, 250, -1_500, 5_400_000, i64::from(i32::MAX)] {
            let length = Length(Duration::from_millis(millis));
            let text = serde_json::to_string(&length).unwrap();
            assert_eq!(serde_json::from_str::<Length>(&text).unwrap(), length, "{text}");
        }
        assert!(serde_json::from_str::<Length>("\"5x\"").is_err());
        let at = Instant("2026-02-04T10:15:00.125Z".parse().unwrap());
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-02-04T10:15:00.125Z\"");
        assert_eq!(serde_json::from_str::<Instant>("\"2026-02-04T10:15:00.125Z\"").unwrap(), at);
    }
}
