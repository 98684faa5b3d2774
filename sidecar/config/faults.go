package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
)

// checkPolicy validates the policy, and finds the line of each error.
func (d *decoder) checkPolicy(n *node, u *Upstream) {
	known := make(map[string]bool) // an operation repeats the errors of the upstream's retry
	for _, err := range faults(u.Policy.Validate()) {
		if err.Field == "retry" {
			known["retry: "+err.Err.Error()] = true
		}
		if at, why := nodeOf(n, u, err.Field), err.Err.Error(); !known[why] {
			at, why = locate(at, why)
			d.Bad(at, "", "%s", why)
		}
	}
}

// faults splits the error of Validate.
func faults(err error) (all []*weir.FieldError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, faults(e)...)
		}
		return all
	}
	if f, ok := errors.AsType[*weir.FieldError](err); ok {
		return []*weir.FieldError{f}
	}
	return nil
}

// nodeOf returns the node that a field of the policy was read from. It returns the upstream's node if there is none.
func nodeOf(n *node, u *Upstream, field string) *node {
	name, rest, _ := strings.Cut(field, "[")
	at := n.Get(name)
	if i, err := strconv.Atoi(strings.TrimSuffix(rest, "]")); err == nil {
		switch {
		case name == "limits" && i < len(u.Policy.Limits):
			at = at.Get(u.Policy.Limits[i].Name)
		case name == "shadow" && i < len(u.Policy.Shadow):
			at = n.Get("limits").Get(u.Policy.Shadow[i].Name)
		case name == "operations" && i < len(u.Policy.Operations):
			at = at.Get(u.Policy.Operations[i].Name)
		}
	}
	if at == nil {
		return n
	}
	return at
}

// locate finds the field at the beginning of an error, such as "adaptive: start 9: must not be above max 5". It
// returns the field's node and the rest of the message.
func locate(n *node, why string) (*node, string) {
	for {
		child, rest := mentioned(n, why)
		if child == nil {
			return n, why
		}
		n, why = child, rest
	}
}

func mentioned(n *node, why string) (child *node, rest string) {
	for i, item := range n.Items {
		if rest, ok := strings.CutPrefix(why, fmt.Sprintf("[%d] ", i)); ok {
			return item, rest
		}
		if item.Kind == doc.Scalar && strings.HasPrefix(why, strconv.Quote(item.Text)) {
			return item, why
		}
	}
	for _, e := range n.Fields {
		for _, name := range calledInErrors(e.Name) {
			if after, ok := strings.CutPrefix(why, name); ok && strings.IndexAny(after, ": [") == 0 {
				return e.Value, strings.TrimLeft(after, ": ")
			}
		}
	}
	return nil, why
}

// calledInErrors returns the names of a field in the errors of the packages that a policy uses.
func calledInErrors(name string) []string {
	if name == "rate" {
		return []string{"rate", "amount", "period"}
	}
	return []string{name, strings.ReplaceAll(name, "_", " ")}
}
