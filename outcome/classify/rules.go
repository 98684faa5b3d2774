package classify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/outcome"
)

// Rules override the class of responses and errors, for an upstream that uses a status or a code unusually. An entry is a status
// ("429") or an exact code from Outcome.Code ("SlowDown", "connection reset"). A code takes precedence over a status. The zero
// Rules change nothing.
type Rules struct {
	Throttled []string // refused because of the rate and not done: safe to repeat
	Failed    []string // worth repeating if the operation may be repeated
	Rejected  []string // never worth repeating
}

// Validate returns every entry that cannot work.
func (r Rules) Validate() error {
	var errs []error
	seen := make(map[string]string)
	for _, l := range r.lists() {
		for i, entry := range l.entries {
			field := fmt.Sprintf("%s[%d] %q", l.name, i, entry)
			if err := checkEntry(entry); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", field, err))
			}
			if before, dup := seen[entry]; dup {
				errs = append(errs, fmt.Errorf("%s: is in %s already", field, before))
			}
			seen[entry] = l.name
		}
	}
	return errors.Join(errs...)
}

func checkEntry(s string) error {
	if s == "" || strings.TrimSpace(s) != s {
		return errors.New("must be a status or a code, with no space around it")
	}
	if n, err := strconv.Atoi(s); err == nil && len(s) <= 3 && (n < 200 || n > 599) {
		return errors.New("a status must be from 200 to 599")
	}
	return nil
}

type ruleList struct {
	name    string
	class   outcome.Class
	entries []string
}

func (r *Rules) lists() [3]ruleList {
	return [...]ruleList{
		{"rejected", outcome.Rejected, r.Rejected},
		{"throttled", outcome.Throttled, r.Throttled},
		{"failed", outcome.Failed, r.Failed},
	}
}

// HTTP is the function HTTP with these rules.
func (r Rules) HTTP(resp Response) outcome.Outcome {
	o := HTTP(resp)
	if n := r.number(&resp); n != "" {
		o.Code = n
	}
	return r.Apply(o, resp.Status)
}

// number returns the number that the body of an error has as its code, if a rule names it. Without a rule, a number is no code:
// most numbers repeat the status.
func (r *Rules) number(resp *Response) string {
	named := func(l ruleList) bool { return slices.ContainsFunc(l.entries, isNumber) }
	if lists := r.lists(); resp.Status < 400 || !slices.ContainsFunc(lists[:], named) {
		return ""
	}
	body := plain(resp)
	if leader(body) != '{' {
		return ""
	}
	f := jsonFacts{base: resp.base(), wait: -1, lead: -1}
	f.read(body)
	for _, n := range f.numbers[codeNumber : errorNumber+1] {
		if _, ok := r.class(n); ok && isNumber(n) {
			return n
		}
	}
	return ""
}

// isNumber reports whether an entry is a number and no status.
func isNumber(entry string) bool {
	_, err := strconv.Atoi(entry)
	return err == nil && len(entry) > 3
}

// Error is the function Error with these rules.
func (r Rules) Error(ctx context.Context, err error) outcome.Outcome {
	return r.Apply(Error(ctx, err), 0)
}

// Apply sets the class of o by the rule for its code, or by the rule for the status, which is 0 if there was none. A canceled
// call stays canceled. Hints stay, except that a call rejected by a rule loses the advice to retry.
func (r Rules) Apply(o outcome.Outcome, status int) outcome.Outcome {
	if r.empty() || o.Class == outcome.Canceled {
		return o
	}
	class, ok := r.class(o.Code)
	if !ok && status > 0 {
		class, ok = r.class(strconv.Itoa(status))
	}
	if !ok || class == o.Class {
		return o
	}
	return become(o, class, status)
}

func (r *Rules) empty() bool {
	return len(r.Throttled) == 0 && len(r.Failed) == 0 && len(r.Rejected) == 0
}

func (r *Rules) class(entry string) (outcome.Class, bool) {
	if entry == "" {
		return 0, false
	}
	for _, l := range r.lists() {
		if slices.Contains(l.entries, entry) {
			return l.class, true
		}
	}
	return 0, false
}

// become changes the class. If the meaning of the response is overridden, it is no proof that the upstream did nothing.
func become(o outcome.Outcome, class outcome.Class, status int) outcome.Outcome {
	if o.Code == "" && status > 0 {
		o.Code = strconv.Itoa(status)
	}
	o.Undone = class == outcome.Throttled || o.Undone && o.Class != outcome.Throttled
	o.Unsent = o.Unsent && o.Undone
	o.Class = class
	if class == outcome.Rejected && o.Hint.Advice == outcome.Again {
		o.Hint.Advice = outcome.Unsaid
	}
	return o
}
