//! One spelling for one thing: whatever else is written in an address leads nowhere.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::routes::{Route, routes};
use crate::support::served::Served;

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(Served::start)
}

fn all_routes() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(routes)
}

/// The path of a route, about jobs, runs and nodes that are not there.
fn known(idx: usize) -> String {
    let routes = all_routes();
    routes[idx % routes.len()].path_of("nobody", "nowhere")
}

fn check(method: &str, path: &str) -> Result<(), TestCaseError> {
    let reply = served().ask(method, path, &[], None);
    prop_assert!(400 <= reply.status && reply.status < 500, "{method} {path}: {reply:?}");
    Ok(())
}

fn methods() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn another_spelling_of_a_route_leads_nowhere(
        route in 0..1_000_usize,
        at in any::<prop::sample::Index>(),
        twist in 0..8_u8,
        method in methods(),
    ) {
        let path = known(route);
        // A letter of the part that is not somebody's name.
        let fixed = path.find("/nobody").or(path.find("/0198")).or(path.find("/nowhere")).unwrap_or(path.len());
        let at = at.index(fixed);
        let letter = path.as_bytes()[at];
        let (before, after) = (&path[..at], &path[at + 1..]);
        let twisted = match twist {
            0 => format!("{before}%{letter:02x}{after}"),
            1 => format!("{before}{}{after}", char::from(letter).to_ascii_uppercase()),
            2 => format!("{path}/"),
            3 => format!("/{path}"),
            4 => path.replacen('/', "//", 1 + route % 3),
            5 => format!("{before}/./{after}"),
            6 => format!("/x/..{path}"),
            _ => format!("{path};a=b"),
        };
        prop_assume!(twisted != path);
        let is_about_nobody = fixed < path.len() && twist == 7;
        prop_assume!(!is_about_nobody || method != "PUT");
        check(method, &twisted)?;
    }

    /// No rule goes by the text of a path: whatever is written, strangers see the open routes and nothing else.
    #[test]
    fn without_a_token_only_open_routes_answer(
        route in 0..1_000_usize,
        at in any::<prop::sample::Index>(),
        path in "[/a-zA-Z0-9%.;@:~_-]{0,30}",
        ending in prop::sample::select(vec!["", "/healthz", "/readyz", "/login", "/metrics", "/api/v1/openapi.json", ";/healthz", "%2Fhealthz", "/../healthz", "?/healthz", "#/login"]),
        twist in 0..5_u8,
        method in methods(),
    ) {
        let known = known(route);
        let at = at.index(known.len());
        let path = match twist {
            0 => known,
            1 => format!("{known}{ending}"),
            2 => format!("{}{ending}", &known[..at]),
            3 => format!("/{path}{ending}"),
            _ => format!("{}%{:02x}{}", &known[..at], known.as_bytes()[at], &known[at + 1..]),
        };
        let (written, _) = path.split_once(['?', '#']).unwrap_or((&path, ""));
        let is_open = all_routes().iter().any(|it| it.is_open() && it.path == written)
            || ["/login", "/assets/evenbeat.css"].contains(&written);
        let reply = served().ask_bare(method, &path, &[], None);
        prop_assert!(is_open || reply.status / 100 != 2, "{method} {path}: {reply:?}");
        prop_assert!(reply.status < 500, "{method} {path}: {reply:?}");
    }

    #[test]
    fn whatever_is_asked_for_that_is_not_there_is_not_there(
        path in "[/a-zA-Z0-9%.;@:~_-]{0,40}",
        prefix in prop::sample::select(vec!["/", "/api/v1/", "/api/v1/jobs/", "/api/v1/runs/", "/api/v1/nodes/", "/api/"]),
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "DELETE"]),
    ) {
        let path = format!("{prefix}{path}");
        let is_route = all_routes().iter().any(|it| it.path == path)
            || ["/", "/login", "/logout", "/assets/evenbeat.css"].contains(&path.as_str());
        prop_assume!(!is_route);
        check(method, &path)?;
    }
}
