package board

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// fresh is how long a form is accepted after it was shown.
const fresh = 10 * time.Minute

// token returns the token of this board's forms, which other pages cannot know.
func (b *Board) token(now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	m := hmac.New(sha256.New, b.secret)
	m.Write([]byte(at))
	return at + "." + hex.EncodeToString(m.Sum(nil))
}

// ours reports whether a form has a token of this board that has not expired.
func (b *Board) ours(token string, now time.Time) bool {
	at, _, _ := strings.Cut(token, ".")
	s, err := strconv.ParseInt(at, 10, 64)
	made := time.Unix(s, 0)
	return err == nil && hmac.Equal([]byte(token), []byte(b.token(made))) && now.Sub(made) < fresh && !made.After(now.Add(time.Minute))
}

// A deed is the action that a form requests.
type deed struct {
	Upstream, Do     string
	Limit, Key       string // of a pause, or the key of a breaker
	Keyed            bool   // Key is set, even if it is empty
	Pool             string
	Pooled           bool
	Operation        string
	ID               string // of a dead letter; "" means all dead letters of the upstream
	For, Reason, Bad string
}

func deedOf(f url.Values) *deed {
	return &deed{
		Upstream: f.Get("upstream"), Do: f.Get("do"), Limit: f.Get("limit"), Key: f.Get("key"), Keyed: f.Has("key"),
		Pool: f.Get("pool"), Pooled: f.Has("pool"), Operation: f.Get("operation"), ID: f.Get("id"), For: f.Get("for"), Reason: strings.TrimSpace(f.Get("reason")),
	}
}

// words describes the action for operators.
func (d *deed) words() string {
	what, known := deeds[d.Do]
	if !known {
		return ""
	}
	of := cmp.Or(d.Limit, d.Operation, d.Pool, d.ID)
	if d.letters() && of == "" {
		of = fmt.Sprintf("all dead letters, %d at most", mostRedriven)
	}
	if d.Keyed {
		of = strings.TrimSpace(of + " " + d.Key)
	}
	if of != "" {
		return fmt.Sprintf(what, d.Upstream+" ("+of+")")
	}
	return fmt.Sprintf(what, d.Upstream)
}

var deeds = map[string]string{
	"open":   "Open the breaker of %s: weir refuses its calls until the breaker is reset or the time is over",
	"close":  "Close the breaker of %s: weir makes every call, and failures do not open the breaker until it is reset",
	"reset":  "Reset the breaker of %s: it is closed, and failures open it again",
	"pause":  "Pause %s: its calls wait or are refused",
	"resume": "Resume %s: its calls continue",

	"redrive": "Redrive %s: the dead letters are sent again as limits allow",
	"drop":    "Drop %s: the dead letter is deleted permanently",
}

// letters reports whether the action concerns dead letters.
func (d *deed) letters() bool { return d.Do == "redrive" || d.Do == "drop" }

// back returns the page that follows the action.
func (d *deed) back() string {
	if d.letters() {
		return toDead(d.Upstream)
	}
	return "./?open=" + url.QueryEscape(d.Upstream) + "#" + rowID + url.PathEscape(d.Upstream)
}

// act asks for confirmation, and then carries out the action.
func (b *Board) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !b.ours(r.PostForm.Get("token"), time.Now()) {
		http.Error(w, "the form is too old or was not sent by this page: reload the page", http.StatusForbidden)
		return
	}
	d := deedOf(r.PostForm)
	if d.letters() && d.Upstream == "" {
		http.Error(w, "upstream is missing: name the upstream of the dead letters", http.StatusBadRequest)
		return
	}
	if d.words() == "" {
		http.Error(w, fmt.Sprintf("do %q: want open, close, reset, pause, resume, redrive or drop", d.Do), http.StatusBadRequest)
		return
	}
	if r.PostForm.Get("sure") == "" {
		b.show(w, r, http.StatusOK, func(p *page) { p.sure(d) })
		return
	}
	if d.Reason == "" {
		d.Bad = "Give a reason. It is written to the log."
		b.show(w, r, http.StatusBadRequest, func(p *page) { p.sure(d) })
		return
	}
	n, err := b.do(r.Context(), d)
	if err != nil {
		d.Bad = err.Error()
		b.show(w, r, http.StatusBadRequest, func(p *page) { p.sure(d) })
		return
	}
	said := []any{"upstream", d.Upstream, "do", d.Do, "what", d.words(), "for", d.For, "why", d.Reason, "by", b.Page.Who(r)}
	if d.letters() {
		said = append(said, "changed", n)
	}
	b.Log.Warn("operator action", said...)
	http.Redirect(w, r, d.back(), http.StatusSeeOther)
}

// do carries out the action and returns how many dead letters it changed.
func (b *Board) do(ctx context.Context, d *deed) (int, error) {
	switch {
	case d.letters():
		return b.post(ctx, d)
	case d.Do != "pause" && d.Do != "resume":
		return 0, b.Page.Work(status.Order{Upstream: d.Upstream, Key: d.Key, Do: d.Do, For: d.For})
	}
	o := status.Pausing{Upstream: d.Upstream, Do: d.Do, Limit: d.Limit, Operation: d.Operation, For: d.For}
	if d.Keyed {
		o.Key = &d.Key
	}
	if d.Pooled {
		o.Pool = &d.Pool
	}
	_, err := b.Page.Hold(o)
	return 0, err
}
