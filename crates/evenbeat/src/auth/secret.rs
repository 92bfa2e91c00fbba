//! Secrets as text, and the hashes of them that are stored.

use crate::mint::secret;
use crate::store::access::SecretHash;

/// What a token begins with, so that it can be recognised wherever it turns up.
const PREFIX: &str = "evb_";

/// Digits of a token's id: enough that no two of a thousand are alike.
const ID_DIGITS: usize = 12;

/// A new token: `evb_ID_SECRET`.
pub(super) struct DrawnToken {
    pub(super) id: String,
    /// Shown once.
    pub(super) text: String,
    pub(super) hash: SecretHash,
}

impl DrawnToken {
    pub(super) fn new() -> DrawnToken {
        let (id, drawn) = (hex(&secret()), hex(&secret()));
        let id: String = id.chars().take(ID_DIGITS).collect();
        let text = format!("{PREFIX}{id}_{drawn}");
        DrawnToken { hash: hash_of(&text), id, text }
    }
}

/// The id that a token names, if it looks like one. Says nothing about whether it is valid.
pub(super) fn id_of(token: &str) -> Option<&str> {
    let (id, rest) = token.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
    (id.len() == ID_DIGITS && rest.len() == 64 && is_hex(id) && is_hex(rest)).then_some(id)
}

/// A new cookie: 256 random bits in hexadecimal digits.
pub(super) fn drawn() -> String {
    hex(&secret())
}

/// A new code of a login link: 128 random bits, so that a link fits on one line. It works once, for a minute.
pub(super) fn drawn_code() -> String {
    drawn().chars().take(32).collect()
}

/// The hash of a secret. The secret has 256 random bits, so a plain hash is enough: there is nothing to guess.
pub(super) fn hash_of(secret: &str) -> SecretHash {
    SecretHash(*blake3::hash(secret.as_bytes()).as_bytes())
}

/// What a form must carry to count, made from the session's secret: a page of another site cannot know it.
pub(super) fn form_token(session: &str) -> String {
    hex(&blake3::derive_key("evenbeat 2026 form token of a page session", session.as_bytes()))
}

fn hex(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_id_and_no_two_are_alike() {
        let (one, other) = (DrawnToken::new(), DrawnToken::new());
        assert_eq!(id_of(&one.text), Some(one.id.as_str()));
        assert_eq!(one.hash, hash_of(&one.text));
        assert_ne!(one.text, other.text);
        assert_ne!(one.hash, other.hash);
        assert_eq!(one.text.len(), 4 + 12 + 1 + 64);
    }

    #[test]
    fn what_is_not_written_like_a_token_names_no_id() {
        let token = DrawnToken::new().text;
        for other in [
            String::new(),
            token.replace("evb_", "evr_"),
            token.to_uppercase(),
            token[..80].to_owned(),
            format!("{token}0"),
            format!(" {token}"),
        ] {
            assert_eq!(id_of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_form_token_belongs_to_one_session() {
        let (one, other) = (drawn(), drawn());
        assert_eq!(form_token(&one), form_token(&one));
        assert_ne!(form_token(&one), form_token(&other));
        assert_ne!(form_token(&one), hash_of(&one).0.map(|it| format!("{it:02x}")).concat());
    }
}
