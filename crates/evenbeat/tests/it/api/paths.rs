//! One spelling for one thing: whatever else is written in an address leads nowhere.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::routes::ROUTES;
use crate::support::served::Served;

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(Served::start)
}

/// The path of a route, about jobs, runs and nodes that are not there.
fn known(idx: usize) -> String {
    let (_, path) = ROUTES[idx % ROUTES.len()];
    let run = "0198c0de-0000-7000-8000-00000000002a";
    path.replace("{key}", "nobody").replace("{id}", run).replace("{name}", "nowhere")
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
        route in 0..ROUTES.len(),
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

    #[test]
    fn whatever_is_asked_for_that_is_not_there_is_not_there(
        path in "[/a-zA-Z0-9%.;@:~_-]{0,40}",
        prefix in prop::sample::select(vec!["/", "/api/v1/", "/api/v1/jobs/", "/api/v1/runs/", "/api/v1/nodes/", "/api/"]),
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "DELETE"]),
    ) {
        let path = format!("{prefix}{path}");
        let is_route = ["/healthz", "/readyz"].contains(&path.as_str())
            || ROUTES.iter().any(|(_, it)| *it == path);
        prop_assume!(!is_route);
        check(method, &path)?;
    }
}
