package main

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Credentials that do not come in time are missing: that is a trouble, too.
func TestKeysThatDoNotComeAreATrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.troubles.log = slog.New(slog.NewTextHandler(io.Discard, nil))
		s.lookAtKeys(t.Context(), "credentials of upstream a", "a", aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			select {
			case <-ctx.Done():
				return aws.Credentials{}, ctx.Err()
			case <-time.After(time.Hour):
				return aws.Credentials{}, nil
			}
		}))
		if len(s.troubles.list()) == 0 {
			t.Error("nobody is told that there are no credentials")
		}
	})
}
