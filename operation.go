package weir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/retry"
)

// An Operation is a class of calls with limits, safety and retries of its own.
type Operation struct {
	Name    string
	Methods []string // HTTP methods; none means any
	Path    string   // a prefix of the path, however that is written; "" means any

	// Safe says whether a call may be repeated even if it may have been done
	// already. "" means by method: GET, HEAD, OPTIONS, TRACE, PUT and DELETE are
	// safe, and so is whatever has an Idempotency-Key.
	Safe Safety

	Retry       *retry.Config // in place of the policy's
	Concurrency *Concurrency  // in place of the policy's: then the operation has a bound of its own, or none
}

// A Safety says whether repeating does harm.
type Safety string

const (
	ByMethod Safety = ""
	Yes      Safety = "yes"
	No       Safety = "no"
)

// DefaultOperation is the name of calls that belong to no declared operation.
const DefaultOperation = "default"

func (o Operation) validate(before []Operation) error {
	var errs []error
	if o.Name == "" {
		errs = append(errs, errors.New("name: must not be empty; limits and metrics refer to it"))
	}
	if slices.ContainsFunc(before, func(b Operation) bool { return b.Name == o.Name }) {
		errs = append(errs, fmt.Errorf("name %q: is used twice", o.Name))
	}
	errs = append(errs, o.validateHTTP()...)
	if o.Concurrency != nil {
		errs = append(errs, of("concurrency", o.Concurrency.validate())...)
	}
	if o.Retry != nil {
		errs = append(errs, of("retry", o.Retry.Validate())...)
	}
	return errors.Join(errs...)
}

// validateHTTP validates what HTTP requests are told apart by.
func (o Operation) validateHTTP() (errs []error) {
	for _, m := range o.Methods {
		if m == "" || strings.ToUpper(m) != m || strings.ContainsAny(m, " \t\r\n") {
			errs = append(errs, fmt.Errorf("methods %q: want an HTTP method in capitals", m))
		}
	}
	if o.Path != "" && !strings.HasPrefix(o.Path, "/") {
		errs = append(errs, fmt.Errorf("path %q: must begin with a slash", o.Path))
	}
	if o.Safe != ByMethod && o.Safe != Yes && o.Safe != No {
		errs = append(errs, fmt.Errorf("safe %q: want yes or no, or nothing for by method", o.Safe))
	}
	return errs
}

// of are the mistakes of a field, with its name.
func of(field string, err error) (errs []error) {
	for _, err := range parts(err) {
		errs = append(errs, fmt.Errorf("%s: %w", field, err))
	}
	return errs
}

// Assign gives a call its operation: the one that it names, or else the first declared one that
// matches, or else the one of all others.
func (u *Upstream) Assign(c *Call, matches func(*Operation) bool) *Operation {
	v := u.live.Load()
	if v.policy.Undeclared && c.Operation != "" && v.plans[c.Operation] == nil {
		c.API, c.Operation = cmp.Or(c.API, c.Operation), "" // the API's own name for one of a class
	}
	o := v.other.op
	for i := range v.policy.Operations {
		if p := &v.policy.Operations[i]; p.Name == c.Operation || c.Operation == "" && matches(p) {
			o = p
			break
		}
	}
	c.Operation = cmp.Or(c.Operation, o.Name)
	return o
}
