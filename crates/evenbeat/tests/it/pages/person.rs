//! Someone who looks at pages and sends their forms, without scripts.

use crate::support::served::{Reply, Served};

/// Someone with a session.
pub(super) struct Person<'a> {
    served: &'a Served,
    cookie: String,
}

impl Person<'_> {
    pub(super) fn with_role<'a>(served: &'a Served, role: &str) -> Person<'a> {
        Person { served, cookie: served.session_of(role) }
    }

    /// A page that must be there, as text.
    #[track_caller]
    pub(super) fn page(&self, path: &str) -> String {
        let reply = self.served.ask_bare("GET", path, &[("Cookie", &self.cookie)], None);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        text(&reply)
    }

    /// Sends a form with the token that the pages have.
    pub(super) fn send(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let page = self.page("/welcome");
        let token = page.split("name=\"form_token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        self.send_with_token(path, token, fields)
    }

    pub(super) fn send_with_token(&self, path: &str, token: &str, fields: &[(&str, &str)]) -> Reply {
        let mut body = format!("form_token={token}");
        for (name, value) in fields {
            body.extend(["&", name, "=", &encoded(value)]);
        }
        let headers =
            [("Cookie", self.cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.served.ask_bare("POST", path, &headers, Some(&body))
    }

    /// The page that an answer leads to, and the message that it shows.
    #[track_caller]
    pub(super) fn follow(&self, reply: &Reply) -> String {
        assert_eq!(reply.status, 303, "{reply:?}");
        let flash = reply.header("set-cookie").and_then(|it| it.split(';').next()).unwrap_or_default();
        let cookies = format!("{}; {flash}", self.cookie);
        let path = reply.header("location").unwrap();
        let page = self.served.ask_bare("GET", path, &[("Cookie", &cookies)], None);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        text(&page)
    }
}

pub(super) fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|it| if it.is_ascii_alphanumeric() { char::from(it).to_string() } else { format!("%{it:02X}") })
        .collect()
}
