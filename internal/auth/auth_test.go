package auth

import (
	"context"
	"errors"
	"testing"
)

// anyone accepts every token.
type anyone struct{}

func (anyone) Looks(string) bool { return true }
func (anyone) Check(context.Context, string) (Identity, error) {
	return Identity{Subject: "anyone"}, nil
}

// If external tokens are configured, a listener that does not check them admits no caller.
func TestTokensThatAreCheckedElsewhereLetNobodyIn(t *testing.T) {
	a := &Auth{Issued: anyone{}}
	for _, header := range []string{"", "Bearer x", "Basic x"} {
		if caller, err := a.Check(header, nil); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%q: %q, %v", header, caller, err)
		}
	}
}
