//! Crontabs, as cron reads them: each entry becomes a job, each fault points into the file.
//!
//! ```text
//! CRON_TZ=Europe/Berlin
//! # m  h  dom mon dow  command
//! 0    3  *   *   *    /srv/bin/backup.sh daily
//! @hourly              /srv/bin/rotate-logs
//! ```
//!
//! - `NAME=value` sets a variable for the lines below; `CRON_TZ` and `TZ` set their zone, which is UTC
//!   until then. Of the others nothing is kept.
//! - The first `%` of a command ends it, and the rest would be its standard input; `\%` is a `%`.
//! - `@reboot` names no time, and a date such as 31 February never comes. Such entries are left out, and listed.
//! - A line that cannot be read is listed with its fault, and the others are read all the same.
//! - A comment `# pin` at the end of a command keeps its time as it is written.
//! - The system form (`/etc/crontab`) has a user between schedule and command. A file is taken for
//!   one if some entry names a user that is never a program, such as `root`; or if some entry names a user of a
//!   short list ([`SYSTEM_USERS`]) and every other has a word there that an absolute path follows.
//! - A job is named after its program and up to two plain words behind it: `backup.sh-daily`; a name
//!   that is taken gets a number.

mod entry;
mod form;
mod key;
mod read;
mod words;

pub use form::{CrontabForm, SYSTEM_USERS};
pub use read::{Crontab, CrontabEntry, LeftOut, LeftOutReason, looks_like_crontab, read};
