//! Reads crontabs as cron does: each entry becomes a job, and each error points into the file.
//!
//! ```text
//! CRON_TZ=Europe/Berlin
//! # m  h  dom mon dow  command
//! 0    3  *   *   *    /srv/bin/backup.sh daily
//! @hourly              /srv/bin/rotate-logs
//! ```
//!
//! - `NAME=value` sets a variable for the lines below. `CRON_TZ` and `TZ` set their zone, which is UTC until then. Other
//!   variables are listed, and do not change how the file is read.
//! - The first `%` of a command ends it, and the rest would be its standard input; `\%` is a `%`.
//! - `@reboot` has no time, and a date such as 31 February does not exist. Such entries are skipped and listed.
//! - An invalid line is listed with its error, and the other lines are still read.
//! - A comment `# pin` at the end of a command keeps its time as written.
//! - The system form (`/etc/crontab`) has a user between schedule and command. It is detected if some entry names a user
//!   that is never a program, such as `root`; or if some entry names a user of a short list (`SYSTEM_USERS`) and every
//!   other entry has a word there that is followed by an absolute path.
//! - A job is named after its program and up to two plain words after it: `backup.sh-daily`. A name that is taken gets a
//!   number.

mod entry;
mod form;
mod key;
mod read;
mod words;

pub use form::CrontabForm;
pub use read::{Crontab, CrontabEntry, CrontabVariable, SkipReason, SkippedEntry, looks_like_crontab, read};
