package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// A vault holds at most one access key.
type vault struct {
	mu    sync.Mutex
	key   string
	loads int
}

func (v *vault) put(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key = key
}

func (v *vault) load(context.Context) (aws.CredentialsProvider, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loads++; v.key == "" {
		return nil, errors.New("there is no key")
	}
	return credentials.NewStaticCredentialsProvider(v.key, "s", ""), nil
}

func key(t *testing.T, r *rotating) string {
	t.Helper()
	c, err := r.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.AccessKeyID
}

func TestRefusedCredentialsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vault{key: "OLD"}
		r, err := newRotating(t.Context(), v.load)
		if err != nil {
			t.Fatal(err)
		}
		old, _ := r.Retrieve(t.Context())
		if r.Refresh(t.Context(), old) {
			t.Error("the same credentials are taken for others")
		}
		before := v.loads
		for range 10 { // many refusals
			r.Refresh(t.Context(), old)
		}
		if v.loads != before {
			t.Errorf("%d loads in an instant, want none", v.loads-before)
		}
		time.Sleep(readAgain)
		v.put("NEW")
		if !r.Refresh(t.Context(), old) || key(t, r) != "NEW" {
			t.Errorf("after a refusal the key is %s, want NEW", key(t, r))
		}
		before = v.loads
		if !r.Refresh(t.Context(), old) || v.loads != before { // another call that was signed with the old key
			t.Errorf("%d loads for the second refusal of the old key, want none", v.loads-before)
		}
		time.Sleep(readAgain)
		v.put("")
		if fresh, _ := r.Retrieve(t.Context()); r.Refresh(t.Context(), fresh) || key(t, r) != "NEW" {
			t.Errorf("without any credentials the key is %s, want NEW kept", key(t, r))
		}
		v.put("HUP")
		if r.Reload(t.Context()); key(t, r) != "HUP" {
			t.Errorf("after a reload the key is %s, want HUP", key(t, r))
		}
	})
}

func TestChangedFileIsReadAgainOnce(t *testing.T) {
	for _, variable := range []string{"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		file := filepath.Join(t.TempDir(), "file")
		t.Setenv(variable, file)
		write := func(s string) {
			if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		synctest.Test(t, func(t *testing.T) {
			v := &vault{key: "OLD"}
			r, err := newRotating(t.Context(), v.load)
			if err != nil {
				t.Fatal(err)
			}
			key(t, r)
			write("rotated")
			v.put("NEW")
			time.Sleep(checkFiles)
			for range 5 {
				if got := key(t, r); got != "NEW" {
					t.Errorf("%s: the key is %s, want NEW", variable, got)
				}
				time.Sleep(checkFiles)
			}
			if v.loads != 2 {
				t.Errorf("%s: %d loads, want 2", variable, v.loads)
			}
		})
	}
}
