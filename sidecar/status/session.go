package status

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/auth"
)

// sessionLength is how long a cookie is valid for a browser that has sent a token.
const sessionLength = time.Hour

// cookieName is the name of the cookie. Cookies do not distinguish the ports of a host, so weirs on one host
// overwrite each other's. Other programs on the host may also receive it, so it is valid from one address only.
const cookieName = "weir_session"

// sessions are browsers that have sent a token. Only sessions that were logged out are stored. A cookie contains the
// token's name, its expiry and the address from which it is valid. It is signed with a secret of this process and the
// hash of the token, so that it ends with either. The zero value is ready. It is safe for concurrent use.
type sessions struct {
	once   sync.Once
	secret [32]byte
	wrong  tries

	mu      sync.Mutex
	revoked map[string]time.Time // signatures of logged-out sessions, until they would have expired
	before  time.Time            // sessions that began before this instant are invalid
}

// maxRevoked bounds the number of stored logged-out sessions. One more ends all sessions.
const maxRevoked = 10_000

// revoke ends the session of a request.
func (s *sessions) revoke(r *http.Request, a *auth.Auth, now time.Time) {
	_, until, ok := s.who(r, a, now)
	c, err := r.Cookie(cookieName)
	if !ok || err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked == nil {
		s.revoked = make(map[string]time.Time)
	}
	for value, until := range s.revoked {
		if !now.Before(until) {
			delete(s.revoked, value)
		}
	}
	if len(s.revoked) >= maxRevoked {
		clear(s.revoked)
		s.before = now.Add(time.Second)
	}
	s.revoked[c.Value] = until
}

// ended reports whether a signed session was logged out.
func (s *sessions) ended(value string, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, revoked := s.revoked[value]
	return revoked || until.Add(-sessionLength).Before(s.before)
}

// sign returns the signature of a session.
func (s *sessions) sign(until, from string, t *auth.Token) string {
	s.once.Do(func() { _, _ = rand.Read(s.secret[:]) }) // never fails
	m := hmac.New(sha256.New, s.secret[:])
	m.Write([]byte(until + "\n" + t.Name + "\n" + from + "\n"))
	m.Write(t.SHA256[:])
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// cookie returns the cookie for a browser at an address that has sent the token.
func (s *sessions) cookie(r *http.Request, t *auth.Token, now time.Time) *http.Cookie {
	until := strconv.FormatInt(now.Add(sessionLength).Unix(), 10) + "-" + rand.Text() // two sessions of the same second must differ
	value := until + "." + t.Name + "." + s.sign(until, addressOf(r), t)
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: int(sessionLength.Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

// who returns the name of the token that a browser has sent, and until when the session is valid. It returns false if
// there is no valid session.
func (s *sessions) who(r *http.Request, a *auth.Auth, now time.Time) (name string, until time.Time, ok bool) {
	c, err := r.Cookie(cookieName)
	if err != nil || a == nil {
		return "", until, false
	}
	at, rest, _ := strings.Cut(c.Value, ".")
	i := strings.LastIndexByte(rest, '.') // names may contain dots
	end, _, _ := strings.Cut(at, "-")
	second, err := strconv.ParseInt(end, 10, 64)
	if until = time.Unix(second, 0); err != nil || i < 0 || !now.Before(until) {
		return "", until, false
	}
	for j := range a.Tokens {
		if t := &a.Tokens[j]; t.Name == rest[:i] && hmac.Equal([]byte(rest[i+1:]), []byte(s.sign(at, addressOf(r), t))) && !s.ended(c.Value, until) {
			return t.Name, until, true
		}
	}
	return "", until, false
}

// addressOf returns the address from which a request comes, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// login starts a session for a browser that sends a valid token.
func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		p.SignIn(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	t := tokenOf(p.auth(), strings.TrimSpace(r.PostForm.Get("token")))
	if t == nil {
		if p.Refused != nil {
			p.Refused("caller")
		}
		if wait := p.sessions.wrong.failed(r, now); wait > 0 {
			p.SignIn(w, http.StatusTooManyRequests, "Too many wrong tokens: try again in "+tooMany(w, wait)+" s.")
			return
		}
		p.SignIn(w, http.StatusUnauthorized, "The token is not valid for the admin listener.")
		return
	}
	http.SetCookie(w, p.sessions.cookie(r, t, now))
	http.Redirect(w, r, "./", http.StatusSeeOther)
}

// tooMany sets Retry-After, and returns it.
func tooMany(w http.ResponseWriter, wait time.Duration) (seconds string) {
	seconds = strconv.FormatInt(int64(wait/time.Second)+1, 10)
	w.Header().Set("Retry-After", seconds)
	return seconds
}

// tokenOf returns the token with a secret; nil if there is none.
func tokenOf(a *auth.Auth, secret string) (found *auth.Token) {
	if a == nil {
		return nil
	}
	hash := auth.Hash(secret)
	for i := range a.Tokens { // all tokens, so that the duration reveals nothing
		if t := &a.Tokens[i]; hmac.Equal(hash[:], t.SHA256[:]) {
			found = t
		}
	}
	return found
}

// logout ends the session of a browser, and deletes its cookie.
func (p *Page) logout(w http.ResponseWriter, r *http.Request) {
	p.sessions.revoke(r, p.auth(), time.Now())
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "./", http.StatusSeeOther)
}

// Session returns the name of the token of a browser's session; "" if it has none.
func (p *Page) Session(r *http.Request) string {
	name, _, _ := p.sessions.who(r, p.auth(), time.Now())
	return name
}
