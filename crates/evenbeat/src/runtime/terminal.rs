//! How wide the terminal is.

use std::env;
use std::io;

/// What is taken where nobody says: pipes, files.
const WIDTH_DEFAULT: u16 = 80;

/// The width to write text for: `COLUMNS` if it says so, else that of the terminal.
pub(crate) fn width() -> u16 {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    said.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0))
        .unwrap_or(WIDTH_DEFAULT)
}
