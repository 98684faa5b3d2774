package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A sidecar whose only upstream cannot be called is not ready, also if callers are counted.
func TestNotReadyWhereCallersAreCounted(t *testing.T) {
	for name, value := range map[string]string{"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "HOME": t.TempDir()} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	yaml := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ncallers: {keys: {user: 'header:X-User'}}\n" +
		"upstreams: {a: {preset: bedrock, url: 'http://127.0.0.1:9', aws: {service: bedrock, region: eu-west-1}, llm: {}}}\n"
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	s.log.waitFor(t, "trouble")
	resp, err := http.Get("http://" + s.admin.Addr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("answered %s", resp.Status)
	}
}

// Credentials that do not arrive in time are a problem.
func TestKeysThatDoNotComeAreATrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
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

// If credentials disappear while weir runs, that and their return are reported at the next check, or after a timeout if
// there is no response.
func TestLostKeysAreToldInTime(t *testing.T) {
	for name, most := range map[string]time.Duration{"refused": 10 * time.Second, "silent": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Bool
				keys := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
					switch {
					case !lost.Load():
						return aws.Credentials{AccessKeyID: "AKWEIR"}, nil
					case name == "silent":
						<-ctx.Done()
						return aws.Credentials{}, ctx.Err()
					}
					return aws.Credentials{}, errors.New("the role is gone")
				})
				s := &Server{}
				s.troubles.log = slog.New(slog.NewTextHandler(io.Discard, nil))
				s.speaks.names = map[string]signer{"a": {keys: keys}}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go s.watchKeys(ctx)
				for _, gone := range []bool{true, false, true} {
					time.Sleep(3 * time.Second)
					lost.Store(gone)
					begin := time.Now()
					for synctest.Wait(); (len(s.troubles.list()) > 0) != gone; synctest.Wait() {
						if time.Since(begin) > most {
							t.Fatalf("lost: %v, and nobody is told within %v", gone, most)
						}
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		})
	}
}
