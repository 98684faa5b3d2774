package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/seed1158cd35/weir/observe"
)

// Ntfy is a topic of an ntfy server. On a server without accounts, anyone who knows the topic can read it, so it is a secret.
type Ntfy struct {
	URL    Secret // of the server; "" means https://ntfy.sh
	Topic  Secret
	Token  Secret       // "tk_..."; "" means an open topic
	Client *http.Client `json:"-"` // its transport and timeout are used; nil means a new client
}

// Limits of ntfy: messages up to 4,096 bytes (longer ones become attachments), titles up to 1 KB and tags up to 512 bytes
// (release 2.28, 2026-08). weir's limits are lower.
const (
	mostNtfyText  = 4096
	mostNtfyTitle = 250
)

var topics = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`)

type ntfy struct {
	Ntfy
	name, url string
}

// NewNtfy returns a target for a topic, or the error in its configuration.
func NewNtfy(n Ntfy) (Target, error) {
	n.URL = cmp.Or(n.URL, "https://ntfy.sh")
	u, err := endpoint(n.URL)
	switch {
	case err != nil:
	case !topics.MatchString(string(n.Topic)):
		err = errors.New("topic: want 1 to 64 letters, digits, - and _")
	case strings.ContainsFunc(string(n.Token), func(r rune) bool { return r <= ' ' || r > '~' }):
		err = errors.New("token: contains a character that is not allowed in tokens")
	}
	if err != nil {
		return nil, fmt.Errorf("ntfy: %w", err)
	}
	n.Client = orDefault(n.Client)
	return &ntfy{Ntfy: n, name: "ntfy " + u.Host, url: u.JoinPath(string(n.Topic)).String()}, nil
}

func (n *ntfy) Name() string { return n.name }

// String and GoString hide the URL when a configuration is printed.
func (n *ntfy) String() string   { return n.name }
func (n *ntfy) GoString() string { return n.name }

func (n *ntfy) Send(ctx context.Context, m Message) error {
	h := http.Header{}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Title", mime.QEncoding.Encode("utf-8", printable(observe.Cut(m.Title(), mostNtfyTitle))))
	h.Set("Priority", priority(&m))
	h.Set("Tags", tags(&m))
	if m.Runbook != "" {
		h.Set("Click", printable(m.Runbook))
	}
	if n.Token != "" {
		h.Set("Authorization", "Bearer "+string(n.Token))
	}
	p := post{name: n.name, client: n.Client, url: n.url, header: h, body: []byte(observe.Cut(m.Text(), mostNtfyText))}
	return p.send(ctx, judgeNtfy)
}

// printable replaces the characters in s that would end a header line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// judgeNtfy detects a used up daily quota: codes 42908 (messages) and 42905 (bandwidth) last until midnight UTC, so a retry
// within seconds would fail.
func judgeNtfy(e *SendError, body []byte) {
	var answer struct {
		Code int `json:"code"`
	}
	if e.Status == http.StatusTooManyRequests && json.Unmarshal(body, &answer) == nil {
		if answer.Code == 42908 || answer.Code == 42905 {
			e.Final, e.Err = true, fmt.Errorf("code %d: the daily quota is used up until midnight UTC", answer.Code)
		}
	}
}

// priority returns ntfy's priority: 3 is the default, 4 makes a sound.
func priority(m *Message) string {
	if m.Resolved || m.Kind == Violation {
		return "3"
	}
	return "4"
}

func tags(m *Message) string {
	if m.Resolved {
		return "white_check_mark," + string(m.Kind)
	}
	if m.Kind == Violation {
		return "warning," + string(m.Kind)
	}
	return "rotating_light," + string(m.Kind)
}
