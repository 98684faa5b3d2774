package serve

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/seed1158cd35/weir/awsx/resign"
)

// A rotating provider reloads credentials when a credentials file has changed, when AWS refuses them, and on request.
// The SDK reads files only once. It is safe for concurrent use.
type rotating struct {
	load func(context.Context) (aws.CredentialsProvider, error)

	mu      sync.Mutex
	now     aws.CredentialsProvider
	read    time.Time // the last reload
	checked time.Time // the last check of the files
	stamp   stamp     // of the files when they were read
}

var _ resign.Refresher = (*rotating)(nil)

const (
	checkFiles  = time.Second     // minimum interval between checks of the files
	readAgain   = 5 * time.Second // minimum interval between reloads of refused credentials
	readTimeout = 5 * time.Second
)

// newRotating returns a provider that loads its credentials with load.
func newRotating(ctx context.Context, load func(context.Context) (aws.CredentialsProvider, error)) (*rotating, error) {
	r := &rotating{load: load, stamp: stampFiles()}
	var err error
	r.now, err = load(ctx)
	return r, err
}

// Retrieve implements aws.CredentialsProvider.
func (r *rotating) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return r.current(ctx).Retrieve(ctx)
}

// current returns the provider, reloaded if a file has changed.
func (r *rotating) current(ctx context.Context) aws.CredentialsProvider {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.checked) >= checkFiles {
		if r.checked = now; stampFiles() != r.stamp {
			r.again(ctx)
		}
	}
	return r.now
}

// Refresh implements resign.Refresher.
func (r *rotating) Refresh(ctx context.Context, refused aws.Credentials) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed(ctx, refused) {
		return true
	}
	if time.Since(r.read) < readAgain {
		return false
	}
	r.again(ctx)
	return r.changed(ctx, refused)
}

// Reload reloads the credentials unconditionally.
func (r *rotating) Reload(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(ctx)
}

// changed reports whether valid credentials exist that differ from the refused ones. The caller holds r.mu.
func (r *rotating) changed(ctx context.Context, refused aws.Credentials) bool {
	c, err := r.now.Retrieve(ctx)
	return err == nil && (c.AccessKeyID != refused.AccessKeyID || c.SecretAccessKey != refused.SecretAccessKey || c.SessionToken != refused.SessionToken)
}

// again reloads the provider. A new provider without credentials does not replace the old one, because a file may be
// half written. The caller holds r.mu.
func (r *rotating) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	at := stampFiles()
	r.read = time.Now()
	next, err := r.load(ctx)
	if err == nil {
		_, err = next.Retrieve(ctx)
	}
	if err == nil {
		r.now, r.stamp = next, at
	}
}

// A stamp changes when the credentials files change.
type stamp [3]struct {
	size     int64
	modified time.Time
}

// stampFiles returns the current stamp of the credentials files.
func stampFiles() (s stamp) {
	for i, name := range [...]string{
		cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), awsconfig.DefaultSharedCredentialsFilename()),
		cmp.Or(os.Getenv("AWS_CONFIG_FILE"), awsconfig.DefaultSharedConfigFilename()),
		os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"),
	} {
		if info, err := os.Stat(name); name != "" && err == nil {
			s[i].size, s[i].modified = info.Size(), info.ModTime()
		}
	}
	return s
}
