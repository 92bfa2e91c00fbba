//! A webhook of Slack, or of others that speak like it: Mattermost, Rocket.Chat, Discord with `/slack`.

use std::time::Duration as Length;

use hyper::Method;
use serde_json::{Value as Json, json};

use super::{Payload, Receipt};
use crate::config::SecretSource;
use crate::outbound::{Outbound, OutboundAnswer, OutboundError, OutboundRequest};

/// Longest text of a block.
const BLOCK_CHARS_MAX: usize = 3_000;

/// Longest text of a message without blocks, as far as we use it.
const TEXT_CHARS_MAX: usize = 8_000;

pub(super) async fn send(
    url: &SecretSource,
    payload: &Payload,
    outbound: &Outbound,
    within: Length,
) -> Receipt {
    let url = match url.read() {
        Ok(url) => url,
        Err(why) => return Receipt::failed(why),
    };
    let answer = post(outbound, &url, &blocks(payload), &payload.id, within).await;
    let is_not_understood = matches!(&answer, Ok(answer) if answer.status == 400);
    if !is_not_understood {
        return Receipt::of_http(answer);
    }
    // If the receiver rejects blocks, send plain text.
    Receipt::of_http(post(outbound, &url, &plain(payload), &payload.id, within).await)
}

async fn post(
    outbound: &Outbound,
    url: &str,
    body: &Json,
    id: &str,
    within: Length,
) -> Result<OutboundAnswer, OutboundError> {
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("idempotency-key", id.chars().filter(char::is_ascii_graphic).collect()),
    ];
    let body = body.to_string().into_bytes();
    outbound.send(OutboundRequest { method: Method::POST, url, headers, body, within }).await
}

/// The message as one block, with its subject for notifications.
fn blocks(payload: &Payload) -> Json {
    let subject = escaped(&payload.subject);
    let text =
        shortened(&format!("*{}*\n{}", subject.replace('*', "∗"), escaped(&payload.text)), BLOCK_CHARS_MAX);
    json!({
        "text": shortened(&subject, BLOCK_CHARS_MAX),
        "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": text } }],
    })
}

fn plain(payload: &Payload) -> Json {
    let text = format!("{}\n{}", escaped(&payload.subject), escaped(&payload.text));
    json!({ "text": shortened(&text, TEXT_CHARS_MAX) })
}

/// Text that pings nobody and links nowhere: the three characters that Slack reads as markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The head and the tail of a text that is too long: what it is about is at its head, what to do at its tail.
fn shortened(text: &str, most: usize) -> String {
    const CUT: &str = "\n…\n";
    let n_chars = text.chars().count();
    if n_chars <= most {
        return text.to_owned();
    }
    let half = (most - CUT.chars().count()) / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(n_chars - half).collect();
    // An escape that was cut in two would show as it is, which is harmless.
    format!("{head}{CUT}{tail}")
}

#[cfg(test)]
mod tests {
    use evenbeat_core::alert::AlertText;
    use evenbeat_core::time::Timestamp;

    use super::*;

    fn payload(subject: &str, body: &str) -> Payload {
        let text = AlertText { subject: subject.to_owned(), body: body.to_owned(), link: None };
        Payload::plain("id", &text, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn nobody_is_pinged_and_no_link_is_faked() {
        let body =
            blocks(&payload("<!channel> & <https://evil.example|docs>", "see <@W07> <!here>")).to_string();
        for hostile in ["<!channel>", "<!here>", "<@W07>", "<https"] {
            assert!(!body.contains(hostile), "{body}");
        }
        assert!(body.contains("&lt;!channel&gt; &amp;"), "{body}");
    }

    #[test]
    fn a_text_that_is_too_long_keeps_its_head_and_its_tail() {
        let long = format!("begin{}end", "x".repeat(10_000));
        let body = blocks(&payload("[LATE] shop", &long));
        let text = body["blocks"][0]["text"]["text"].as_str().unwrap();
        assert!(text.chars().count() <= BLOCK_CHARS_MAX, "{}", text.len());
        assert!(text.starts_with("*[LATE] shop*\nbegin") && text.ends_with("end"), "{text}");
    }
}
