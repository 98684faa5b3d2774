package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Kind is the subject matter of a message.
type Kind string

const (
	Exhausted   Kind = "exhausted"    // a call was given up
	Quota       Kind = "quota"        // a quota of a calendar day or longer is used up
	Violation   Kind = "violation"    // the upstream throttled calls that the limits had allowed
	BreakerOpen Kind = "breaker_open" // an upstream is no longer called
	Fallback    Kind = "fallback"     // the fleet's store is unavailable; limits are applied locally
	DeadLetter  Kind = "dead_letter"  // a delivery could not be delivered
	System      Kind = "system"       // weir itself is broken or cannot get what a call needs
	Retry       Kind = "retry"        // an attempt failed and is repeated; only if it is one of Config.Kinds
)

// A Severity is how urgent a message is.
type Severity string

const (
	Critical Severity = "critical" // calls fail, or data is lost
	Warning  Severity = "warning"  // calls succeed late, or may fail soon
)

// Severity returns the severity of messages of the kind.
func (k Kind) Severity() Severity {
	switch k {
	case Exhausted, Quota, BreakerOpen, System, DeadLetter:
		return Critical
	}
	return Warning
}

// Kinds lists every kind.
var Kinds = [...]Kind{Exhausted, Quota, Violation, BreakerOpen, Fallback, DeadLetter, System, Retry}

// words has, for each kind: the title, the title of the end, and the recommended action.
var words = map[Kind]struct{ title, over, action string }{
	Exhausted: {"calls are given up", "calls are no longer given up",
		"Check the upstream's status page and the reason. If the upstream is healthy, the limits are too low for the demand, or the deadlines too short for retries."},
	Quota: {"a quota is used up", "calls are no longer refused because of the quota",
		"Wait for the reset, ask the upstream for a larger quota, or find out which caller uses most of it."},
	Violation: {"throttled within the limits", "the upstream no longer throttles allowed calls",
		"Set the limits to the upstream's actual values, or find out what else uses the same account."},
	BreakerOpen: {"breaker opened", "the breaker closed: weir calls the upstream again",
		"Check the upstream's status page. weir sends probes, and closes the breaker when they succeed."},
	Fallback: {"shared store is unreachable", "the shared store is reachable again",
		"Restore the store (Redis or DynamoDB). Until then each process uses its part of the limits, and a process without a part refuses calls."},
	System: {"weir itself failed", "weir no longer fails",
		"Search weir's log for the correlation id, or run weir why ID. Something that weir needs is missing or broken, such as credentials, a disk or the deliveries' database."},
	Retry: {"calls are repeated", "calls are no longer repeated",
		"No action is needed if this ends soon. If calls are also given up, check the upstream's status page and quotas."},
	DeadLetter: {"deliveries became dead letters", "no more deliveries become dead letters; existing ones are kept until they are redriven or dropped",
		"Run weir dead list and weir dead show to see the reasons. Fix the cause, then run weir dead redrive or weir dead drop."},
}

// steps lists the steps of an action with more than one, in order.
var steps = map[Kind][]string{
	Exhausted: {
		"Search the log for \"gave up\": each line has the code, the error and the correlation id of a call. weir why ID lists its attempts.",
		"Check the upstream's status page, and the quotas of this account and region.",
		"If both are fine, lower the demand, raise the deadline or ask for a larger quota. Then restart the work that was given up.",
	},
	Violation: {
		"Find out what else calls this upstream with the same account or key: weir does not count those calls.",
		"Compare the limits above with the upstream's documented limits, including burst and shape.",
		"Until then, lower the rate, or set adaptive: true.",
	},
}

// serviceSteps replaces steps for some AWS services.
var serviceSteps = map[string]map[Kind][]string{
	"drs": {Exhausted: drsSteps, Retry: drsSteps},
}

var drsSteps = []string{
	"Check DRS quotas: compare what Service Quotas lists for AWS Elastic Disaster Recovery in this account and region with what is needed.",
	"Review concurrent jobs in the region (aws drs describe-jobs): DRS runs 20 at a time, including jobs of other programs.",
	"Spread operations over regions or over time: each region has separate limits.",
	"Request higher limits in Service Quotas, or open a support case. Then restart the work that was given up.",
}

// stepsFor returns the steps of a kind for an upstream of an AWS service, "" for none.
func stepsFor(k Kind, service string) []string {
	if s := serviceSteps[service][k]; s != nil {
		return s
	}
	return steps[k]
}

// A Message is what targets send: plain data, in which every name is from the configuration. It may be shared
// by goroutines that do not change it.
type Message struct {
	ID        string    `json:"id"` // the same on every attempt to deliver it
	Kind      Kind      `json:"kind"`
	Resolved  bool      `json:"resolved"`
	Upstream  string    `json:"upstream,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Limit     string    `json:"limit,omitempty"`
	Region    string    `json:"region,omitempty"`  // AWS region of the call in the message
	Account   string    `json:"account,omitempty"` // AWS account of that call: twelve digits
	Host      string    `json:"host"`
	Since     time.Time `json:"since"` // when the condition began
	At        time.Time `json:"at"`    // of this message
	Severity  Severity  `json:"severity"`
	Detail    string    `json:"detail,omitempty"`
	Error     string    `json:"error,omitempty"`  // of the last attempt, for calls to AWS; redacted
	Action    string    `json:"action,omitempty"` // what to do; "" if resolved
	Steps     []string  `json:"steps,omitempty"`  // the action in detail, in order
	Runbook   string    `json:"runbook,omitempty"`

	// Suppressed is the number of events without a message since the last message.
	Suppressed int64 `json:"suppressed"`
}

// Where returns the upstream, the operation and the limit: "s3 put, limit all".
func (m *Message) Where() string {
	where := strings.TrimSpace(m.Upstream + " " + m.Operation)
	if m.Limit != "" {
		where += ", limit " + m.Limit
	}
	return strings.TrimPrefix(where, ", ")
}

// Title returns the message in one line.
func (m *Message) Title() string {
	title := words[m.Kind].title
	if m.Resolved {
		title = "resolved: " + title
	}
	if where := m.Where(); where != "" {
		title = where + ": " + title
	}
	return "weir: " + title
}

// Text returns the complete message in a few lines.
func (m *Message) Text() string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	what := words[m.Kind].title
	if m.Resolved {
		what = words[m.Kind].over
	}
	if m.Detail != "" {
		what += " (" + m.Detail + ")"
	}
	line("What", what)
	line("Severity", string(m.Severity))
	line("Error", m.Error)
	line("Where", m.Where())
	line("Region", m.Region)
	line("Account", m.Account)
	line("Host", m.Host)
	line("Since", m.Since.UTC().Format(time.RFC3339))
	if m.Suppressed > 0 {
		line("Suppressed", fmt.Sprintf("%d more since the last message", m.Suppressed))
	}
	line("What to do", m.Action)
	for i, step := range m.Steps {
		line("Step "+strconv.Itoa(i+1), step)
	}
	line("Runbook", m.Runbook)
	return b.String()
}
