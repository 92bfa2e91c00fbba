//! The size of the terminal, and the zone of the person in front of it.

use std::env;
use std::fs;
use std::io;
use std::path::Path;

use evenbeat_core::zone::Zone;
use terminal_size::{Height, Width};

/// Where nothing tells the width: pipes, files.
const WIDTH_DEFAULT: u16 = 80;
const HEIGHT_DEFAULT: u16 = 24;

/// The width to draw charts and wrap text for: `COLUMNS` if it is set, else that of the terminal.
pub(crate) fn width() -> u16 {
    known_width().unwrap_or(WIDTH_DEFAULT)
}

/// The width that tables must fit. A pipe or a file has none: a table written there is whole, for `grep` and `awk`.
pub(crate) fn table_width() -> usize {
    known_width().map_or(usize::MAX, usize::from)
}

/// Columns and rows of the terminal, for what fills the whole screen.
pub(crate) fn size() -> (u16, u16) {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((Width(width), Height(height))) if 0 < width && 0 < height => (width, height),
        _ => (WIDTH_DEFAULT, HEIGHT_DEFAULT),
    }
}

fn known_width() -> Option<u16> {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    columns.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(Width(width), _)| width))
}

/// The zone in which this person reads times: `TZ` if it is set, else the zone of the machine, else UTC.
pub(crate) fn local_zone() -> Zone {
    let variable = env::var("TZ").ok();
    let link = fs::read_link("/etc/localtime").ok();
    let name = fs::read_to_string("/etc/timezone").ok();
    local_zone_of(variable.as_deref(), link.as_deref(), name.as_deref())
}

/// Zones come from the bundled database by their names, so a file of the machine counts by its name only.
fn local_zone_of(variable: Option<&str>, link: Option<&Path>, name: Option<&str>) -> Zone {
    if let Some(variable) = variable {
        // A `TZ` that is empty or not understood means UTC to the C library too.
        let variable = variable.trim_start_matches(':');
        return Zone::named(zone_name(variable)).unwrap_or_else(|_| Zone::utc());
    }
    let link = link.and_then(Path::to_str).map(zone_name);
    let name = name.map(str::trim);
    link.into_iter().chain(name).find_map(|name| Zone::named(name).ok()).unwrap_or_else(Zone::utc)
}

/// `Europe/Berlin` of `/usr/share/zoneinfo/Europe/Berlin`.
fn zone_name(path: &str) -> &str {
    let name = path.rsplit_once("zoneinfo/").map_or(path, |(_, name)| name);
    ["posix/", "right/"].iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variable: Option<&str>, link: Option<&str>, name: Option<&str>, expected: &str) {
        assert_eq!(local_zone_of(variable, link.map(Path::new), name).name(), expected);
    }

    #[test]
    fn the_local_zone_is_found_by_its_name() {
        let berlin = Some("/usr/share/zoneinfo/Europe/Berlin");
        check(None, berlin, None, "Europe/Berlin");
        check(None, Some("../usr/share/zoneinfo/posix/Asia/Tokyo"), None, "Asia/Tokyo");
        check(Some("America/New_York"), berlin, None, "America/New_York");
        check(Some(":Asia/Tokyo"), berlin, None, "Asia/Tokyo");
        check(Some(":/usr/share/zoneinfo/Asia/Tokyo"), berlin, None, "Asia/Tokyo");
        check(None, None, Some("Europe/Paris\n"), "Europe/Paris");
        check(None, Some("/etc/zones/somewhere"), Some("Europe/Paris\n"), "Europe/Paris");
    }

    #[test]
    fn where_nothing_is_known_it_is_utc() {
        check(None, None, None, "UTC");
        check(Some(""), Some("/usr/share/zoneinfo/Europe/Berlin"), None, "UTC");
        check(Some("CET-1CEST"), Some("/usr/share/zoneinfo/Europe/Berlin"), None, "UTC");
    }
}
