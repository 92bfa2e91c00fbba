//! Who looks at a page, and what they may do there.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use axum::extract::{Form, FromRequest, FromRequestParts, Query, Request};
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use evenbeat_core::rights::Role;
use evenbeat_core::time::Timestamp;

use super::Pages;
use super::error::NoPage;
use super::flash::Flash;
use super::prefs::Prefs;
use super::times::Times;
use crate::api::{scheme_of, session_cookie};
use crate::auth::PageSession;
use crate::intake::Actor;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The field of a form that holds its token.
pub(super) const FORM_TOKEN: &str = "form_token";

/// A role that a page needs, as a type.
pub(super) trait PageRole: Send {
    const ROLE: Role;
}

macro_rules! page_roles {
    ($($(#[$doc:meta])* $name:ident = $role:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name;

        impl PageRole for $name {
            const ROLE: Role = Role::$role;
        }
    )*};
}

page_roles! {
    /// Someone who may look.
    PageViewer = Viewer;
    /// Someone who may pause, resume, run, cancel, drain and rebalance.
    PageOperator = Operator;
    /// Someone who may change what is run.
    PageEditor = Editor;
    /// Someone who may do everything.
    PageAdmin = Admin;
}

/// Someone with a session who has at least that role.
#[derive(Debug)]
pub(super) struct PageUser<R> {
    pub(super) session: PageSession,
    pub(super) prefs: Prefs,
    /// What an earlier form has to say.
    pub(super) flash: Option<Flash>,
    /// The path of this page.
    pub(super) path: String,
    /// What the query of this page says.
    pub(super) query: FormFields,
    /// Incidents that are open, for the navigation; none if that is not known.
    pub(super) open_incidents: Option<u64>,
    role: PhantomData<R>,
}

impl<R> PageUser<R> {
    /// Whether they may do what a role may.
    pub(super) fn may(&self, role: Role) -> bool {
        role <= self.session.role
    }

    /// How times are shown to them.
    pub(super) fn times(&self, now: Timestamp) -> Times {
        Times { zone: self.prefs.zone.clone(), now }
    }

    /// How they are called in the audit.
    pub(super) fn actor(&self) -> &Actor {
        &self.session.actor
    }
}

impl<R: PageRole> FromRequestParts<Pages> for PageUser<R> {
    type Rejection = NoPage;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<PageUser<R>, NoPage> {
        let scheme = scheme_of(&pages.trusted_proxies, &parts.extensions, &parts.headers);
        let session = match session_cookie(&parts.headers, scheme) {
            Some(cookie) => pages.auth.session(cookie).await.map_err(NoPage::Down)?,
            None => None,
        };
        let Some(session) = session else {
            let site = parts.headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
            let is_from_elsewhere = matches!(site, Some(b"cross-site" | b"same-site"));
            return Err(if is_from_elsewhere { NoPage::ComeAgain } else { NoPage::LogIn });
        };
        if session.role < R::ROLE {
            return Err(NoPage::NotAllowed(R::ROLE));
        }
        Ok(PageUser {
            session,
            prefs: Prefs::of(&parts.headers),
            flash: Flash::of(&parts.headers),
            path: parts.uri.path().to_owned(),
            query: FormFields::of_query(&parts.uri),
            open_incidents: pages.open_incidents.count(&pages.app.store).await,
            role: PhantomData,
        })
    }
}

/// A form that someone with that role has sent from a page of theirs.
#[derive(Debug)]
pub(super) struct PageForm<R> {
    pub(super) user: PageUser<R>,
    pub(super) fields: FormFields,
}

/// What a form carries. A field may occur several times.
#[derive(Clone, Debug, Default)]
pub(super) struct FormFields(BTreeMap<String, Vec<String>>);

impl FormFields {
    /// The fields of a query. One that cannot be read has none.
    pub(super) fn of_query(uri: &Uri) -> FormFields {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
        pairs.map(|Query(pairs)| FormFields::of(pairs)).unwrap_or_default()
    }

    fn of(pairs: Vec<(String, String)>) -> FormFields {
        let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs {
            fields.entry(name).or_default().push(value);
        }
        FormFields(fields)
    }

    /// The first value of a field, without space around it; none if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(|it| it.trim()).filter(|it| !it.is_empty())
    }

    /// All values of a field.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

impl<R: PageRole> FromRequest<Pages> for PageForm<R> {
    type Rejection = NoPage;

    async fn from_request(request: Request, pages: &Pages) -> Result<PageForm<R>, NoPage> {
        let (mut parts, body) = request.into_parts();
        let user = PageUser::from_request_parts(&mut parts, pages).await?;
        let request = Request::from_parts(parts, body);
        let Form(pairs) =
            Form::<Vec<(String, String)>>::from_request(request, pages).await.map_err(|_| NoPage::Forged)?;
        let fields = FormFields::of(pairs);
        match fields.get(FORM_TOKEN) {
            Some(token) if user.session.accepts(token) => Ok(PageForm { user, fields }),
            _ => Err(NoPage::Forged),
        }
    }
}
