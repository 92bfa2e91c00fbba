//! A person with a browser that has no scripts: a session, pages, and forms.

use crate::support::served::{Reply, Served};

/// One session.
pub(crate) struct PageClient<'a> {
    served: &'a Served,
    pub(crate) cookie: String,
}

impl<'a> PageClient<'a> {
    pub(crate) fn new(served: &'a Served, role: &str) -> PageClient<'a> {
        PageClient { served, cookie: served.session_of(role) }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &self.cookie)
    }

    fn get_with(&self, path: &str, cookie: &str) -> Reply {
        let reply = self.served.ask_bare("GET", path, &[("Cookie", cookie)], None);
        let text = String::from_utf8_lossy(&reply.body);
        if reply.header("content-type") == Some("text/html; charset=utf-8") {
            assert!(!text.contains("style=\""), "an inline style in {path}");
            assert_eq!(text.matches("<script").count(), 1, "one script in {path}");
            assert!(reply.body.len() < 100_000, "{path} has {} bytes", reply.body.len());
            let policy = reply.header("content-security-policy").unwrap_or_default();
            assert!(policy.contains("default-src 'self'"), "{path}: {policy}");
        }
        reply
    }

    /// The text of a page that must be there.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", text(&reply));
        text(&reply)
    }

    pub(crate) fn form_token(&self) -> String {
        let page = text(&self.get("/sites"));
        let (_, rest) = page.split_once(r#"name="form_token" value=""#).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// Sends a form of one of their pages.
    pub(crate) fn send(&self, path: &str, fields: &str) -> Reply {
        self.send_without_token(path, &format!("form_token={}&{fields}", self.form_token()))
    }

    pub(crate) fn send_without_token(&self, path: &str, fields: &str) -> Reply {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.served.ask_bare("POST", path, &[("Cookie", &self.cookie), kind], Some(fields))
    }

    /// Sends a form, and returns the page that it leads to, with its message.
    #[track_caller]
    pub(crate) fn send_and_follow(&self, path: &str, fields: &str) -> String {
        let reply = self.send(path, fields);
        assert_eq!(reply.status, 303, "{path}: {}", text(&reply));
        let flash = reply.header("set-cookie").unwrap().split(';').next().unwrap();
        text(&self.get_with(reply.header("location").unwrap(), &format!("{}; {flash}", self.cookie)))
    }
}

pub(crate) fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

/// What a person sees of a page: its text without markup.
pub(crate) fn seen(page: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for it in page.chars() {
        match it {
            '<' => is_tag = true,
            '>' => is_tag = false,
            it if !is_tag => text.push(it),
            _ => {}
        }
    }
    text
}
