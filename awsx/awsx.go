// Package awsx puts the clients of aws-sdk-go-v2 under policies: one call on a
// configuration, and every operation of every service waits for its turn, is repeated
// where that is worth it and safe, and stops when the service is away.
//
//	guard := awsx.New(awsx.Options{})
//	guard.Attach(&cfg)
//	client := s3.NewFromConfig(cfg) // as always
//
// Each account, region and service has an upstream of its own, made on first use. The
// limits of all operations are asked before every attempt; the SDK's own retries give
// way to weir's, so that attempts do not multiply, whatever Retryer a client has. A call
// that weir refuses ends in a *weir.Refusal, one that it gives up in a
// *retry.GaveUpError around the SDK's error.
//
// What a service refused for its rate was not done, and is tried again. What broke, or
// whose answer was lost, is tried again where that does no harm: where it only reads,
// where the request has a token (the SDK fills in many by itself), or where doing it
// twice leaves what doing it once does, see package wire. Of DynamoDB that is PutItem
// and DeleteItem but not UpdateItem, which may count; the SDK repeats all three. A body
// that is no io.Seeker is sent once.
//
// A role, or a session with a bucket, that the SDK asks for on the way is a call of its
// own. If it fails, the call that needed it fails, and its service is not blamed. The
// SDK's correction of a wrong clock works as without a guard.
package awsx

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed1158cd35/weir"
)

// Options say what clients are held to. The zero Options hold them to the quotas that
// AWS publishes, see Preset.
type Options struct {
	// Policy is the policy of a service; nil means Preset. It is asked once for each
	// target.
	Policy func(Target) weir.Policy

	// Account is the account of the credentials. "" means the account that they tell, which those of a role do. Where
	// they tell none, all credentials of one source (the provider, and its role) count as one account, but for static
	// ones: each key counts as an account.
	Account string

	// BySource counts static credentials of an unknown account as one account, too.
	BySource bool

	// ID tells the correlation id of a call, for events and logs, by its context; nil, and a call without one, means
	// the SDK's own id of the call (Amz-Sdk-Invocation-Id).
	ID func(context.Context) string

	// PrefixDepth is how many slashes of a key of S3 its prefix has; 0 means 1.
	PrefixDepth int

	Upstream weir.Options
}

// A Target is what has limits of its own.
type Target struct{ Account, Region, Service string }

// String is the name of its upstream: aws/s3/eu-west-1/123456789012.
func (t Target) String() string { return "aws/" + t.Service + "/" + t.Region + "/" + t.Account }

// A Guard holds the clients of a program to policies. It is safe for concurrent use.
type Guard struct {
	o  Options
	mu sync.Mutex
	up sync.Map // Target -> *upstream
}

// An upstream is what a target is called through.
type upstream struct {
	*weir.Upstream
	target  Target
	scopes  []string // of its limits and breaker, but for those that every call has
	places  sync.Map // operation -> the keys that every call of it has
	counted bool     // limits count items
	bounded bool     // attempts have a timeout
	depth   int      // slashes in a prefix
	numbers []string // how attempts are announced
}

// New makes a guard.
func New(o Options) *Guard {
	if o.Policy == nil {
		o.Policy = func(t Target) weir.Policy { return Preset(t.Service) }
	}
	return &Guard{o: o}
}

// Attach puts all clients that will be made of a configuration under the guard, in place
// of any guard that it is under already. The configuration's credentials tell the
// account, so they come first; a client whose own options have others needs Option. The
// Retryer of the configuration, or of a client, is not asked: retries are the policy's.
func (g *Guard) Attach(cfg *aws.Config) { g.attach(cfg, g.o.Account) }

func (g *Guard) attach(cfg *aws.Config, account string) {
	a := newAttached(g, account, cfg.Credentials)
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], a.add)
}

// Option puts one client under the guard, whatever its configuration is under: it comes
// last in its APIOptions.
func (g *Guard) Option(credentials aws.CredentialsProvider) func(*middleware.Stack) error {
	return newAttached(g, g.o.Account, credentials).add
}

// Upstream is what a target is called through; it is made if there is none. A policy that
// it is given later must have no scopes, units or timeouts that its first had not.
func (g *Guard) Upstream(t Target) (*weir.Upstream, error) {
	u, err := g.upstream(t)
	if err != nil {
		return nil, err
	}
	return u.Upstream, nil
}

func (g *Guard) upstream(t Target) (*upstream, error) {
	if u, ok := g.up.Load(t); ok {
		return u.(*upstream), nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if u, ok := g.up.Load(t); ok {
		return u.(*upstream), nil
	}
	p := g.o.Policy(t)
	p.Undeclared = true // operations are named by the SDK
	u, err := weir.New(t.String(), p, g.o.Upstream)
	if err != nil {
		return nil, fmt.Errorf("awsx: the policy for %s: %w", t, err)
	}
	timeouts := u.Policy().Timeouts
	made := &upstream{
		Upstream: u, target: t, bounded: timeouts.Attempt > 0 || timeouts.Call > 0,
		depth: cmp.Or(g.o.PrefixDepth, 1), numbers: numbers(p.Retry.WithDefaults().Attempts),
	}
	made.scope(p.BreakerScope)
	for _, l := range p.Limits {
		made.scope(l.Scope)
		made.counted = made.counted || l.Unit == Items || l.Unit == Reads || l.Unit == Writes
	}
	g.up.Store(t, made)
	return made, nil
}

func (u *upstream) scope(s string) {
	if s != "" && s != Account && s != Region && s != Operation && !slices.Contains(u.scopes, s) {
		u.scopes = append(u.scopes, s)
	}
}

// Targets are those that have been called.
func (g *Guard) Targets() (all []Target) {
	g.up.Range(func(t, _ any) bool {
		all = append(all, t.(Target))
		return true
	})
	return all
}

// Close takes the guard's upstreams out of the fleet, if they are in one.
func (g *Guard) Close() {
	g.up.Range(func(_, u any) bool {
		u.(*upstream).Close()
		return true
	})
}

// attached is a guard on the clients of one configuration.
type attached struct {
	g        *Guard
	account  string
	provider aws.CredentialsProvider
	last     atomic.Pointer[upstream] // most clients have one
	loop     atomic.Pointer[single]
	source   atomic.Pointer[sourceName]
}

func newAttached(g *Guard, account string, c aws.CredentialsProvider) *attached {
	if account == "" && (c == nil || aws.IsCredentialsProvider(c, (*aws.AnonymousCredentials)(nil))) {
		account = "anonymous"
	}
	return &attached{g: g, account: account, provider: c}
}

// upstream is that of a call.
func (a *attached) upstream(ctx context.Context, service string) (*upstream, error) {
	t := Target{a.of(ctx), awsmiddleware.GetRegion(ctx), service}
	if u := a.last.Load(); u != nil && u.target == t {
		return u, nil
	}
	u, err := a.g.upstream(t)
	if err == nil {
		a.last.Store(u)
	}
	return u, err
}

// of is whose limits a call counts against. Credentials that cannot be had are told of
// by the SDK when it needs them.
func (a *attached) of(ctx context.Context) string {
	if a.account != "" {
		return a.account
	}
	c, err := a.provider.Retrieve(ctx)
	switch {
	case err != nil:
		return "unknown"
	case c.AccountID != "":
		return c.AccountID
	}
	return a.bySource(&c)
}

// bySource returns a name for the source of credentials that do not tell their account: what the provider calls
// itself, with its profile or file, or else its type. Keys are rotated, so a key would not do: each new one would
// begin with full limits.
func (a *attached) bySource(c *aws.Credentials) string {
	kind, source := "source-", c.Source
	switch {
	case source == "":
		source = fmt.Sprintf("%T", a.provider)
	case source == credentials.StaticCredentialsName && !a.g.o.BySource:
		kind, source = "key-", c.AccessKeyID
	}
	if s := a.source.Load(); s != nil && s.source == source {
		return s.name
	}
	sum := sha256.Sum256([]byte(source)) // it may be a key, or the path of a file
	s := &sourceName{source, kind + hex.EncodeToString(sum[:6])}
	a.source.Store(s)
	return s.name
}

type sourceName struct{ source, name string }
