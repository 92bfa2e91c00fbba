//! What to do while no channel is set up.

use maud::{Markup, html};

/// To be pasted into the configuration. A test reads it with the parser of the configuration.
pub(super) const EXAMPLE: &str = "\
[alerts]
default = [\"ops\"]

[alerts.channels.ops]
kind = \"email\"
smtp = \"mail.example:587\"
from = \"Evenbeat <evenbeat@example.org>\"
to = [\"ops@example.org\"]
user = \"evenbeat\"
password_file = \"/etc/evenbeat/smtp-password\"
";

pub(super) fn section() -> Markup {
    html! {
        section.sec.gap aria-labelledby="s-h" {
            div.sec-h { h2 id="s-h" { "Set up a channel" } span.sub { "mail, Slack, a webhook, or a command" } }
            ol.howto {
                li { "Add a channel to the configuration of the server, for example for mail:" pre.logx { (EXAMPLE) } }
                li { "Restart the server: " code { "evenbeat serve --config FILE" } "." }
                li { "Send a test from this page, or with " code { "evenbeat alert test ops" } "." }
            }
        }
    }
}
