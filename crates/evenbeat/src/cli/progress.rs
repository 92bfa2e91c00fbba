//! A bar on the terminal while something takes long. Where there is no terminal there is no bar.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many steps a bar has.
const STEPS: f64 = 1_000.0;

/// How far several things are that go on at once.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Of each, from 0 to 1.
    done: Mutex<Vec<f64>>,
}

impl Progress {
    /// A bar on standard error if that is a terminal and if it is wanted; else nothing at all.
    pub(crate) fn new(is_wanted: bool) -> Progress {
        let target =
            if is_wanted { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1_000), target);
        let style = ProgressStyle::with_template("{msg:.dim} {wide_bar:.cyan} {percent:>3}% {elapsed:>4}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Progress { bar, done: Mutex::new(Vec::new()) }
    }

    /// Starts to show `n` things under a title.
    pub(crate) fn begin(&self, title: &str, n: usize) {
        if let Ok(mut done) = self.done.lock() {
            *done = vec![0.0; n];
        }
        self.bar.set_message(title.to_owned());
        self.bar.set_position(0);
        if !self.bar.is_hidden() {
            // So that time passes even where nothing else does.
            self.bar.enable_steady_tick(Duration::from_millis(500));
        }
    }

    /// One of them has come so far.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "parts of a bar"
    )]
    pub(crate) fn tell(&self, idx: usize, share: f64) {
        let Ok(mut done) = self.done.lock() else { return };
        if let Some(place) = done.get_mut(idx) {
            *place = share;
        }
        let whole = done.iter().sum::<f64>() / done.len().max(1) as f64;
        self.bar.set_position((whole * STEPS) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
