package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/awsx/lambdax"
)

// stages are the stages of messages. Each has a separate ntfy topic.
var stages = []string{"dev", "stage", "prod"}

// A Status is the state of a message.
type Status string

const (
	Queued  Status = "queued"  // waits for an attempt
	Sending Status = "sending" // claimed, and being sent
	Sent    Status = "sent"    // accepted by ntfy
	Failed  Status = "failed"  // will not be sent; Reason has the cause
)

var statuses = []Status{Queued, Sending, Sent, Failed}

// A Notification reports whether ntfy has a message.
type Notification string

const (
	None    Notification = "none"    // ntfy did not accept it
	Unknown Notification = "unknown" // unclear, because a response was lost or a process ended
	Made    Notification = "made"    // accepted, and ntfy returned an ID
)

// A Message is a notification for people. Lists omit title, text and notification.
type Message struct {
	ID    string `json:"id"`
	Stage string `json:"stage"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`

	Status         Status       `json:"status"`
	Reason         string       `json:"reason,omitempty"` // cause of the failure
	Detail         string       `json:"detail,omitempty"` // details of the cause
	Attempts       int          `json:"attempts"`
	Notification   Notification `json:"notification,omitempty"`
	NotificationID string       `json:"notification_id,omitempty"`
	Created        time.Time    `json:"created"`
	Changed        time.Time    `json:"changed"`

	Owner string `json:"-"` // the caller that submitted it
}

// Limits of ntfy: messages in bytes, and titles in characters.
const (
	maxText  = 4096
	maxTitle = 250
)

// check validates a submitted message.
func (m *Message) check() error {
	switch {
	case !slices.Contains(stages, m.Stage):
		return lambdax.Invalid("stage", "want one of "+strings.Join(stages, ", "))
	case strings.TrimSpace(m.Text) == "":
		return lambdax.Invalid("text", "must not be empty")
	case len(m.Text) > maxText || !utf8.ValidString(m.Text):
		return lambdax.Invalid("text", "want 4096 bytes of UTF-8 at most")
	case utf8.RuneCountInString(m.Title) > maxTitle || strings.ContainsAny(m.Title, "\r\n"):
		return lambdax.Invalid("title", "want one line of 250 characters at most")
	}
	return nil
}

// unavailable returns the reason of a message that failed because ntfy was unavailable, such as "ntfy.sh service unavailable".
// The detail of the delivery begins with it.
func unavailable(detail string) (reason string, ok bool) {
	reason, _, _ = strings.Cut(detail, ": ")
	return reason, strings.HasSuffix(reason, " service unavailable")
}

// A Query selects messages. The zero Query selects all.
type Query struct {
	Owner, Stage string
	Status       Status
	Cursor       string
	Limit        int
}

// Counts are numbers of messages by stage and status. A stage that could not be counted is missing.
type Counts map[string]map[Status]int64

// A Store stores messages and triggers their delivery.
type Store interface {
	// Put stores the message durably before it returns nil. Messages with the same owner, key and content are stored once.
	Put(ctx context.Context, m Message, key string) (Message, error)
	Get(ctx context.Context, id string) (Message, error)
	List(ctx context.Context, q Query) (page []Message, next string, err error)
	Count(ctx context.Context) (Counts, error) // with an error, some stages may be missing
}

var (
	errNotFound = errors.New("no such message")
	errReused   = errors.New("the key was used for another message")
	errCursor   = errors.New("the cursor does not belong to this list")
)

// A published is the body of an ntfy request or response.
type published struct {
	Topic   string   `json:"topic"`
	Title   string   `json:"title,omitempty"`
	Message string   `json:"message"`
	Tags    []string `json:"tags,omitempty"`
	ID      string   `json:"id,omitempty"`
}

// body returns the ntfy request for a message.
func (m *Message) body(topic string) []byte {
	b, err := json.Marshal(published{Topic: topic + "-" + m.Stage, Title: m.Title, Message: m.Text, Tags: []string{m.Stage}})
	if err != nil {
		panic(err) // these fields can always be encoded
	}
	return b
}

// read decodes a body of ntfy. Fields that it cannot decode stay empty.
func read(body []byte) (p published) {
	_ = json.Unmarshal(body, &p) // invalid JSON leaves the fields empty
	return p
}
