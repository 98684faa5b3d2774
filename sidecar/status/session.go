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

// sessionLength is how long a browser that has shown a token is known by its cookie.
const sessionLength = time.Hour

// cookieName is that of the cookie. Cookies do not tell ports of a host apart, so weirs on one host take it from each
// other; and other programs there may see it, which is why it is good from one address only.
const cookieName = "weir_session"

// sessions are browsers that have shown a token. Of them only those are kept that have logged out: a cookie says by whom, until when and from which
// address it is good, and is signed with a secret of this process and with the hash of the token, so that it ends with
// either. The zero value is ready; it is safe for concurrent use.
type sessions struct {
	once   sync.Once
	secret [32]byte
	wrong  tries

	mu      sync.Mutex
	revoked map[string]time.Time // signatures of sessions that were ended, until they would have ended anyway
	before  time.Time            // no session that began before is good
}

// maxRevoked bounds how many ended sessions are told apart; one more ends all sessions.
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

// ended reports whether a session that is signed was ended by its browser.
func (s *sessions) ended(value string, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, revoked := s.revoked[value]
	return revoked || until.Add(-sessionLength).Before(s.before)
}

// sign is the signature of a session.
func (s *sessions) sign(until, from string, t *auth.Token) string {
	s.once.Do(func() { _, _ = rand.Read(s.secret[:]) }) // never fails
	m := hmac.New(sha256.New, s.secret[:])
	m.Write([]byte(until + "\n" + t.Name + "\n" + from + "\n"))
	m.Write(t.SHA256[:])
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// cookie is that of a browser at an address that has shown the token.
func (s *sessions) cookie(r *http.Request, t *auth.Token, now time.Time) *http.Cookie {
	until := strconv.FormatInt(now.Add(sessionLength).Unix(), 10) + "-" + rand.Text() // two sessions of one second end apart
	value := until + "." + t.Name + "." + s.sign(until, addressOf(r), t)
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: int(sessionLength.Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

// who is the name of the token that a browser has shown, and until when that holds; false if it has shown none that is
// good now.
func (s *sessions) who(r *http.Request, a *auth.Auth, now time.Time) (name string, until time.Time, ok bool) {
	c, err := r.Cookie(cookieName)
	if err != nil || a == nil {
		return "", until, false
	}
	at, rest, _ := strings.Cut(c.Value, ".")
	i := strings.LastIndexByte(rest, '.') // names may have dots
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

// addressOf is the address that a request comes from, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// login lets a browser in that shows a token, for as long as a session lasts.
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

// tokenOf is the token with a secret; nil if there is none.
func tokenOf(a *auth.Auth, secret string) (found *auth.Token) {
	if a == nil {
		return nil
	}
	hash := auth.Hash(secret)
	for i := range a.Tokens { // all of them, so that the time taken tells nothing
		if t := &a.Tokens[i]; hmac.Equal(hash[:], t.SHA256[:]) {
			found = t
		}
	}
	return found
}

// logout ends the session of a browser, and has the browser forget its cookie.
func (p *Page) logout(w http.ResponseWriter, r *http.Request) {
	p.sessions.revoke(r, p.auth(), time.Now())
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "./", http.StatusSeeOther)
}

// Session is the name of the token by which a browser is known; "" of one that is known in another way.
func (p *Page) Session(r *http.Request) string {
	name, _, _ := p.sessions.who(r, p.auth(), time.Now())
	return name
}
