//! What a browser asked for by cookies: the theme, and the zone that times are shown in.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use evenbeat_core::zone::Zone;

/// Set by the script, and read here so that the first byte of a page is already right.
const THEME: &str = "evenbeat_theme";
const ZONE: &str = "evenbeat_zone";

/// Light, dark, or what the system says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    /// The attribute of the page, if it is not what the system says.
    pub(super) fn attribute(self) -> Option<&'static str> {
        match self {
            Theme::System => None,
            Theme::Light => Some("light"),
            Theme::Dark => Some("dark"),
        }
    }
}

/// How a browser wants its pages.
#[derive(Clone, Debug)]
pub(super) struct Prefs {
    pub(super) theme: Theme,
    /// UTC until the browser has said otherwise.
    pub(super) zone: Zone,
}

impl Prefs {
    /// What the cookies say. What cannot be understood counts as not said.
    pub(super) fn of(headers: &HeaderMap) -> Prefs {
        let theme = match cookie(headers, THEME) {
            Some("light") => Theme::Light,
            Some("dark") => Theme::Dark,
            _ => Theme::System,
        };
        // A zone's name has slashes, which cookies may hold as they are.
        let zone = cookie(headers, ZONE).and_then(|name| Zone::named(name).ok());
        Prefs { theme, zone: zone.unwrap_or_else(Zone::utc) }
    }
}

/// The first cookie of that name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.find(|(it, _)| *it == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cookies: &str, theme: Theme, zone: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, cookies.parse().unwrap());
        let prefs = Prefs::of(&headers);
        assert_eq!((prefs.theme, prefs.zone.name()), (theme, zone), "{cookies}");
    }

    #[test]
    fn cookies_choose_theme_and_zone() {
        check("a=b", Theme::System, "UTC");
        check("evenbeat_theme=dark; evenbeat_zone=Europe/Berlin", Theme::Dark, "Europe/Berlin");
        check("evenbeat_theme=pink; evenbeat_zone=../../etc/passwd", Theme::System, "UTC");
    }
}
