//! Mail, by SMTP.

use std::time::Duration as Length;

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncTransport, Tokio1Executor};

use super::{Payload, Receipt};
use crate::config::{EmailSettings, EmailTls, SecretSource};

/// Longest subject.
const SUBJECT_CHARS_MAX: usize = 200;

pub(super) async fn send(email: &EmailSettings, payload: &Payload, within: Length) -> Receipt {
    let sent = tokio::time::timeout(within, exchange(email, payload, within)).await;
    sent.unwrap_or_else(|_| Receipt::failed(format!("no answer from the mail server within {within:?}")))
}

async fn exchange(email: &EmailSettings, payload: &Payload, within: Length) -> Receipt {
    let message = match message(email, payload) {
        Ok(message) => message,
        Err(why) => return Receipt { is_refused: true, ..Receipt::failed(why) },
    };
    let transport = match transport(email, within) {
        Ok(transport) => transport,
        Err(why) => return Receipt::failed(why),
    };
    match transport.send(message).await {
        Ok(answer) => {
            let said = answer.message().collect::<Vec<_>>().join(" ");
            let text = format!("SMTP {}: {}", answer.code(), crate::printable::line(&said));
            Receipt { is_accepted: answer.is_positive(), is_refused: false, answer: text }
        }
        Err(error) => {
            let is_refused = error.is_permanent();
            // Errors of the mail library have their cause below them, and no credentials in either.
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            Receipt { is_accepted: false, is_refused, answer: crate::printable::line(&text).into_owned() }
        }
    }
}

fn message(email: &EmailSettings, payload: &Payload) -> Result<Message, String> {
    let mailbox = |text: &str| {
        text.parse::<Mailbox>().map_err(|error| format!("`{text}` is not a mail address: {error}"))
    };
    let from = mailbox(&email.from)?;
    let domain = from.email.domain().to_owned();
    // The same message has the same id, so that a mailbox can drop the second copy.
    let hash = blake3::hash(payload.id.as_bytes()).to_hex();
    let mut builder = Message::builder()
        .from(from)
        .subject(one_line(&payload.subject))
        .message_id(Some(format!("<{}@{domain}>", &hash[..32])))
        .header(ContentType::TEXT_PLAIN)
        .raw_header(HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        ));
    for to in &email.to {
        builder = builder.to(mailbox(to)?);
    }
    builder.body(payload.text.clone()).map_err(|error| format!("the mail cannot be written: {error}"))
}

fn transport(email: &EmailSettings, within: Length) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    type Smtp = AsyncSmtpTransport<Tokio1Executor>;
    let builder = match email.tls {
        EmailTls::Starttls => Smtp::starttls_relay(&email.host),
        EmailTls::Implicit => Smtp::relay(&email.host),
        EmailTls::None => Ok(Smtp::builder_dangerous(&email.host)),
    };
    let mut builder = builder.map_err(|error| format!("mail cannot be encrypted: {error}"))?;
    builder = builder.port(email.port).timeout(Some(within));
    if let (Some(user), Some(password)) = (&email.user, &email.password) {
        let password = SecretSource::read(password)?;
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

/// A subject cannot begin a header of its own.
fn one_line(text: &str) -> String {
    let plain = |it: char| if it.is_control() { ' ' } else { it };
    text.chars().map(plain).take(SUBJECT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use evenbeat_core::alert::AlertText;
    use evenbeat_core::time::Timestamp;

    use super::*;

    #[test]
    fn no_job_adds_a_header() {
        let email = EmailSettings {
            to: vec!["Ops <ops@example.org>".to_owned()],
            from: "evenbeat@example.org".to_owned(),
            host: "localhost".to_owned(),
            port: 25,
            tls: EmailTls::None,
            user: None,
            password: None,
        };
        let subject = "[LATE] shop\r\nBcc: evil@example.org\r\n\r\nhello";
        let body = "line\r\n.\r\nMAIL FROM:<x>\n<b>bold</b> ünïcode".to_owned();
        let text = AlertText { subject: subject.to_owned(), body, link: None };
        let message = message(&email, &Payload::plain("id", &text, Timestamp::UNIX_EPOCH)).unwrap();
        let bytes = String::from_utf8(message.formatted()).unwrap();
        let (head, _) = bytes.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with([' ', '\t']))
            .filter_map(|line| line.split(':').next())
            .collect();
        assert!(!names.contains(&"Bcc"), "{head}");
        assert!(head.contains("Subject: [LATE] shop"), "{head}");
        assert!(head.contains("text/plain"), "{head}");
    }
}
