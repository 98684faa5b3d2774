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

// A rotating provider reads credentials again when a file that they may stand in has changed, when AWS refuses them, and
// when it is told to. The SDK reads files once. It is safe for concurrent use.
type rotating struct {
	load func(context.Context) (aws.CredentialsProvider, error)

	mu      sync.Mutex
	now     aws.CredentialsProvider
	read    time.Time // when it was last read again
	checked time.Time // when the files were last looked at
	stamp   stamp     // of the files, as they were read
}

var _ resign.Refresher = (*rotating)(nil)

const (
	checkFiles  = time.Second     // how often files are looked at, at most
	readAgain   = 5 * time.Second // how often credentials that AWS refuses are read again, at most
	readTimeout = 5 * time.Second
)

// newRotating makes a provider with what load returns.
func newRotating(ctx context.Context, load func(context.Context) (aws.CredentialsProvider, error)) (*rotating, error) {
	r := &rotating{load: load, stamp: stampFiles()}
	var err error
	r.now, err = load(ctx)
	return r, err
}

// Retrieve is aws.CredentialsProvider's.
func (r *rotating) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return r.current(ctx).Retrieve(ctx)
}

// current is the provider, which is made again if a file has changed.
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

// Refresh is resign.Refresher's.
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

// Reload reads the credentials again, whatever there is.
func (r *rotating) Reload(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(ctx)
}

// changed reports whether there are credentials, and others than those that were refused. The lock is held.
func (r *rotating) changed(ctx context.Context, refused aws.Credentials) bool {
	c, err := r.now.Retrieve(ctx)
	return err == nil && (c.AccessKeyID != refused.AccessKeyID || c.SecretAccessKey != refused.SecretAccessKey || c.SessionToken != refused.SessionToken)
}

// again makes the provider again, which replaces the old one if it has credentials: a file may be half written. The lock
// is held.
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

// A stamp tells files apart that have changed.
type stamp [3]struct {
	size     int64
	modified time.Time
}

// stampFiles looks at the files that credentials may stand in.
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
