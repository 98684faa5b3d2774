package auth

import (
	"context"
	"errors"
	"testing"
)

// anyone believes whoever shows a token.
type anyone struct{}

func (anyone) Looks(string) bool { return true }
func (anyone) Check(context.Context, string) (Identity, error) {
	return Identity{Subject: "anyone"}, nil
}

// Where tokens of others are taken, a listener that does not check them lets nobody in.
func TestTokensThatAreCheckedElsewhereLetNobodyIn(t *testing.T) {
	a := &Auth{Issued: anyone{}}
	for _, header := range []string{"", "Bearer x", "Basic x"} {
		if caller, err := a.Check(header, nil); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%q: %q, %v", header, caller, err)
		}
	}
}
