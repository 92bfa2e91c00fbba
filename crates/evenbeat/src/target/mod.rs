//! How work is done: one [`Executor`] for each kind of [`evenbeat_core::job::Target`], and the news they report.

pub mod command;
mod executor;
mod news;
pub mod noop;

pub use executor::{Executor, Task};
pub use news::{EndDetails, NEWS_MAX, NewsSender, RunNews, news_channel};
