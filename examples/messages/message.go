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

// Stages that a message may be of. Each has a topic of its own at ntfy.
var stages = []string{"dev", "stage", "prod"}

// A Status is where a message stands.
type Status string

const (
	Queued  Status = "queued"  // it waits: for its turn, or to be tried again
	Sending Status = "sending" // it was claimed, and is being sent
	Sent    Status = "sent"    // ntfy has it
	Failed  Status = "failed"  // it is not sent any more; Reason says why
)

var statuses = []Status{Queued, Sending, Sent, Failed}

// A Notification says what is known of a message at ntfy.
type Notification string

const (
	None    Notification = "none"    // ntfy has not got it
	Unknown Notification = "unknown" // it may have: an answer was lost, or a process ended
	Made    Notification = "made"    // it has, and said under which ID
)

// A Message is what is to be told to people. Lists have neither title and text nor notification.
type Message struct {
	ID    string `json:"id"`
	Stage string `json:"stage"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`

	Status         Status       `json:"status"`
	Reason         string       `json:"reason,omitempty"` // why it failed
	Detail         string       `json:"detail,omitempty"` // the same in full
	Attempts       int          `json:"attempts"`
	Notification   Notification `json:"notification,omitempty"`
	NotificationID string       `json:"notification_id,omitempty"`
	Created        time.Time    `json:"created"`
	Changed        time.Time    `json:"changed"`

	Owner string `json:"-"` // who handed it in
}

// ntfy takes messages of 4,096 bytes, and titles of 250 characters.
const (
	maxText  = 4096
	maxTitle = 250
)

// check says what is wrong with what somebody hands in.
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

// unavailable is the reason of a message that failed as ntfy was not there: "ntfy.sh service unavailable". Details
// of deliveries begin with it.
func unavailable(detail string) (reason string, ok bool) {
	reason, _, _ = strings.Cut(detail, ": ")
	return reason, strings.HasSuffix(reason, " service unavailable")
}

// A Query chooses messages. The zero Query chooses all.
type Query struct {
	Owner, Stage string
	Status       Status
	Cursor       string
	Limit        int
}

// Counts are numbers of messages by stage and status. A stage that could not be counted is missing.
type Counts map[string]map[Status]int64

// A Store keeps messages, and has them sent.
type Store interface {
	// Put has stored a message when it returns nil. The same key and message of an owner are stored once.
	Put(ctx context.Context, m Message, key string) (Message, error)
	Get(ctx context.Context, id string) (Message, error)
	List(ctx context.Context, q Query) (page []Message, next string, err error)
	Count(ctx context.Context) (Counts, error) // with an error: of some stages, or of none
}

var (
	errNotFound = errors.New("no such message")
	errReused   = errors.New("the key was used for another message")
	errCursor   = errors.New("the cursor does not belong to this list")
)

// A published is what ntfy is told, and what it answers.
type published struct {
	Topic   string   `json:"topic"`
	Title   string   `json:"title,omitempty"`
	Message string   `json:"message"`
	Tags    []string `json:"tags,omitempty"`
	ID      string   `json:"id,omitempty"`
}

// body is what ntfy is told of a message.
func (m *Message) body(topic string) []byte {
	b, err := json.Marshal(published{Topic: topic + "-" + m.Stage, Title: m.Title, Message: m.Text, Tags: []string{m.Stage}})
	if err != nil {
		panic(err) // these fields can all be written
	}
	return b
}

// read reads JSON of ntfy's; "" for what is none.
func read(body []byte) (p published) {
	_ = json.Unmarshal(body, &p) // what is not understood stays empty
	return p
}
