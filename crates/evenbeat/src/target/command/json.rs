//! How ids, instants, durations and words are written in the documents that a scheduler and its shims exchange.
//!
//! A shim outlives the scheduler that started it, and the next scheduler may be of another version. So these forms stay
//! as they are, readers ignore fields that they do not know, and what may be null may be absent.

use evenbeat_core::ids::{Fence, JobKey, NameError, RunId};
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::order::read_run;

/// A document in one line.
pub(super) fn to_text(document: &impl Serialize) -> String {
    // What cannot be written is a path that is not UTF-8, and no document gets such a path.
    serde_json::to_string(document).unwrap_or_default()
}

/// Reads null as the default value.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// Types for `#[serde(with = …)]`: the type of the field, the type in the document, and the way there and back.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident: $field:ty as $form:ty, $write:expr, $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name;

        #[allow(
            clippy::ref_option,
            clippy::trivially_copy_pass_by_ref,
            reason = "serde passes fields by reference"
        )]
        impl $name {
            pub(super) fn serialize<S: Serializer>(field: &$field, to: S) -> Result<S::Ok, S::Error> {
                let write: fn(&$field) -> $form = $write;
                write(field).serialize(to)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$field, D::Error> {
                let read: fn($form) -> Result<$field, String> = $read;
                read(<$form>::deserialize(from)?).map_err(D::Error::custom)
            }
        }
    )*};
}

forms! {
    /// The id of a run as it is printed; no other spelling is read.
    RunIdText: RunId as String,
        |run| run.to_string(),
        |text| read_run(&text).ok_or_else(|| format!("`{text}` is not the id of a run"));
    /// The key of a job.
    JobKeyText: JobKey as String,
        |key| key.to_string(),
        |text| text.parse().map_err(|error: NameError| error.to_string());
    /// The number of a fence.
    FenceNumber: Fence as u64, |fence| fence.0, |number| Ok(Fence(number));
    /// An instant of the boot clock.
    BootMillis: BootTime as i64, |at| at.as_millis(), |millis| Ok(BootTime::from_millis(millis));
    /// An instant of the boot clock, or null.
    BootMillisOrNull: Option<BootTime> as Option<i64>,
        |at| at.map(BootTime::as_millis),
        |millis| Ok(millis.map(BootTime::from_millis));
    /// A duration.
    DurationMillis: Duration as i64, |it| it.as_millis(), |millis| Ok(Duration::from_millis(millis));
    /// The word of an outcome.
    OutcomeWord: Outcome as String,
        |outcome| outcome.as_str().to_owned(),
        |word| Outcome::named(&word).ok_or_else(|| format!("`{word}` is not an outcome"));
    /// The word of a reason, or null. A reason that only a later version knows is read as null.
    EndReasonWord: Option<EndReason> as Option<String>,
        |reason| reason.map(|it| it.as_str().to_owned()),
        |word| Ok(word.and_then(|word| EndReason::named(&word)));
}
