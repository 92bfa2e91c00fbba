//! A job's rule of recurrence.

pub mod cron;
