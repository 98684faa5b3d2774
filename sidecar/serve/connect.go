package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A Trial is the result of checking one thing that a file names.
type Trial struct {
	Name     string
	Said     string   // a success message
	Warnings []string // warnings despite success
	Err      error    // why it cannot be used
}

// A trial checks one thing that a file names. try returns a success message or an error.
type trial struct {
	name string
	try  func(context.Context) (string, error)
}

// trying limits one trial. Trials run concurrently.
const trying = 10 * time.Second

// Try checks everything that a file names, concurrently.
func Try(ctx context.Context, file *config.File, o Options) []Trial {
	o = o.withDefaults()
	all := append(tryStore(file, o), tryDeliveries(file, o)...)
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		all = append(all, trial{"upstream " + u.Name, func(ctx context.Context) (string, error) { return reach(ctx, o, u.URL) }})
	}
	all = append(all, trySecrets(file, o)...)
	all = append(all, tryAWS(file)...)
	all = append(all, tryNotify(file, o)...)
	all = append(all, tryAnswers(file)...)
	results := make([]Trial, len(all))
	var wg sync.WaitGroup
	for i, t := range all {
		wg.Go(func() { results[i] = t.result(ctx) })
	}
	wg.Wait()
	return results
}

func (t trial) result(ctx context.Context) Trial {
	ctx, cancel := context.WithTimeout(ctx, trying)
	defer cancel()
	r := Trial{Name: t.name}
	r.Said, r.Err = t.try(ctx)
	if e, ok := errors.AsType[*warning](r.Err); ok {
		r.Said, r.Warnings, r.Err = e.said, e.warns, nil
	}
	return r
}

// tryStore returns the trial that reads from the store and writes a record with a short lifetime.
func tryStore(file *config.File, o Options) []trial {
	if file.Store == nil {
		return nil
	}
	c := file.Store.WithDefaults()
	return []trial{{"store " + c.Kind(), func(ctx context.Context) (string, error) {
		if c.Kind() == "file" {
			return tryFile(c.File)
		}
		s, err := openStore(ctx, c, o.Env, nil)
		if err != nil {
			return "", err
		}
		defer s.Close()
		return useStore(ctx, s, file)
	}}}
}

const (
	triedGroup  = "weir check"
	triedRecord = "tried"
)

func useStore(ctx context.Context, s fleet.Store, file *config.File) (string, error) {
	begin := time.Now()
	if _, _, err := s.Load(ctx, triedGroup, []string{triedRecord}); err != nil {
		return "", err
	}
	first := time.Since(begin)
	again := time.Now()
	records, now, err := s.Load(ctx, triedGroup, []string{triedRecord})
	if err != nil {
		return "", err
	}
	clock := measure(ctx, s, now, again, time.Since(again))
	r := fleet.Record{Name: triedRecord, Value: []byte("1"), Keep: time.Minute}
	if len(records) > 0 {
		r.Version = records[0].Version
	}
	if _, _, err := s.Swap(ctx, triedGroup, r); err != nil {
		return "", err
	}
	said := fmt.Sprintf("answers in %v (first request, including the connection: %v), can be read and written; its clock, which limits use, is %s",
		tenths(clock.RoundTrip), tenths(first), apart(clock))
	if t, ok := s.(interface{ CheckTTL(context.Context) error }); ok {
		if err := t.CheckTTL(ctx); err != nil {
			return "", err
		}
	}
	m, err := memoryOf(ctx, s, file, now)
	if err != nil {
		return "", err
	}
	return warned(ctx, s, said+m.String(), outageOf(file))
}

// measuring limits the measurement of a store's clock if the store does not report its time with each response.
const measuring = 5 * time.Second

// measure returns the state of a store's clock, from one response that took took, or from the measurements of the
// store's client.
func measure(ctx context.Context, s fleet.Store, now, sent time.Time, took time.Duration) fleet.ClockState {
	k := fleet.ClockState{Known: true, Ahead: now.Sub(sent.Add(took / 2)), Uncertainty: took / 2, RoundTrip: took}
	if c, ok := s.(fleet.Clocked); ok {
		ctx, cancel := context.WithTimeout(ctx, measuring)
		defer cancel()
		_ = c.MeasureClock(ctx) // the state includes partial measurements
		k = c.ClockState()
	}
	return k
}

// apart describes the difference between the store's clock and this machine's, with its uncertainty.
func apart(k fleet.ClockState) string {
	if !k.Known {
		return "unknown"
	}
	within := max(tenths(k.Uncertainty), 100*time.Microsecond)
	switch d := tenths(k.Ahead); {
	case d.Abs() <= within:
		return fmt.Sprintf("the same as this machine's, within %v", within)
	case d > 0:
		return fmt.Sprintf("%v ahead of this machine's, within %v", d, within)
	default:
		return fmt.Sprintf("%v behind this machine's, within %v", -d, within)
	}
}

// tenths rounds to tenths of a millisecond.
func tenths(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// A memory describes which usage of a file's upstreams a store has recorded.
type memory struct {
	unknown []string // upstreams without a record
	cold    []string // upstreams whose record is too short, with limit and end of the cold time
	exceeds []string // like cold, but their limits may be exceeded meanwhile
	known   []string
	silent  []string  // upstreams with a large reservation for processes that stopped responding, with its share
	until   time.Time // when the last limit of the unknown upstreams can be used, if weir starts now
	limit   string    // that limit
}

// memoryOf reads from a store what it has recorded.
func memoryOf(ctx context.Context, s fleet.Store, file *config.File, now time.Time) (m memory, err error) {
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		since, known, err := s.Known(ctx, u.Name)
		if err != nil {
			return m, err
		}
		if m.add(u.Name, u.Policy.Limits, outageOf(file), since, now, known); !known {
			continue
		}
		// The heartbeat of a leaving, unknown client changes nothing. Its response contains the state of the group.
		a, err := s.Beat(ctx, &fleet.Beat{Group: u.Name, Client: "check/" + rand.Text(), Seq: 1, Silence: 1, Life: 1, Leave: true})
		if err != nil {
			return m, err
		}
		if part := a.Out - a.Unknown; part >= fleet.Whole/10 {
			m.silent = append(m.silent, fmt.Sprintf("%.3g%% of the limits of %s", 100*float64(part)/fleet.Whole, u.Name))
		}
	}
	return m, nil
}

// outageOf returns the outage of a file's store, 0 for the default.
func outageOf(file *config.File) time.Duration {
	if file.Store == nil {
		return 0
	}
	return file.Store.Outage
}

// add adds an upstream if it has shared limits.
func (m *memory) add(name string, limits []limit.Limit, outage time.Duration, since, now time.Time, known bool) {
	if !slices.ContainsFunc(limits, func(l limit.Limit) bool { return l.Shares() }) {
		return
	}
	if !known {
		since = now
	}
	colds := coldOf(limits, func(l *limit.Limit) time.Duration {
		if since.IsZero() || !l.Shares() {
			return 0
		}
		return fleet.Warm(l, since, outage).Sub(now)
	})
	if known && len(colds) == 0 {
		m.known = append(m.known, name)
	}
	for i := range colds {
		c := &colds[i]
		until := now.Add(time.Duration(c.LastsMS) * time.Millisecond).Round(time.Second).UTC()
		switch refuses := c.Mode == limit.ColdRefuse; {
		case !refuses:
			m.exceeds = append(m.exceeds, fmt.Sprintf("%s (cold: %v, %s until %s at most)", name, c.Mode, c.Limit, until.Format(time.RFC3339)))
		case known:
			m.cold = append(m.cold, fmt.Sprintf("%s (%s until %s at most)", name, c.Limit, until.Format(time.RFC3339)))
		default:
			if m.unknown = append(m.unknown, name); until.After(m.until) {
				m.until, m.limit = until, name+"'s "+c.Limit
			}
		}
	}
}

func (m memory) String() string {
	var b strings.Builder
	const run = "if they were not used, run weir store init"
	if len(m.unknown) > 0 {
		fmt.Fprintf(&b, "; it is new or was emptied, and has no record of the limits of %s: once weir starts, they count as used up, the longest (%s) until %s; %s",
			strings.Join(m.unknown, ", "), m.limit, m.until.Format(time.RFC3339), run)
	}
	if len(m.cold) > 0 {
		fmt.Fprintf(&b, "; it is cold: it has no record of the usage of the limits of %s, and counts them as used up; %s", strings.Join(m.cold, ", "), run)
	}
	if len(m.exceeds) > 0 {
		fmt.Fprintf(&b, "; it has no record of the usage of the limits of %s: earlier usage may exceed the limit", strings.Join(m.exceeds, ", "))
	}
	if len(m.silent) > 0 {
		fmt.Fprintf(&b, "; it reserves %s for processes that stopped responding, for at most outage", strings.Join(m.silent, ", "))
	}
	if len(m.known) > 0 {
		fmt.Fprintf(&b, "; it has the usage of the limits of %s", strings.Join(m.known, ", "))
	}
	return b.String()
}

// tryFile checks whether a file can be opened for writing. A running weir may have it open.
func tryFile(name string) (string, error) {
	_, err := os.Stat(name)
	fresh := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("%w: weir must be able to read and write it", err)
	}
	if err := f.Close(); err != nil || !fresh {
		return name + " can be read and written", err
	}
	return name + " can be created", os.Remove(name)
}

// reach connects to a server, and for https checks its certificate.
func reach(ctx context.Context, o Options, u *url.URL) (string, error) {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	address := net.JoinHostPort(u.Hostname(), port)
	dial := o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	begin := time.Now()
	c, err := dial(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", address, err, dialAdvice(err))
	}
	defer c.Close()
	if u.Scheme != "https" {
		return fmt.Sprintf("%s accepts connections after %v", address, time.Since(begin).Round(100*time.Microsecond)), nil
	}
	t := tls.Client(c, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	if err := t.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("%s: TLS: %w%s", address, err, tlsAdvice(err))
	}
	until := t.ConnectionState().PeerCertificates[0].NotAfter
	return fmt.Sprintf("%s accepts TLS connections after %v, with a certificate that is valid until %s",
		address, time.Since(begin).Round(100*time.Microsecond), until.Format(time.DateOnly)), nil
}

func dialAdvice(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return " (this host name does not exist: check its spelling, and this machine's DNS server)"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return " (no response: check whether a firewall blocks the connection)"
	}
	return ""
}

func tlsAdvice(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return " (this machine does not trust the certificate's authority: add it to the system's authorities, or name its file in SSL_CERT_FILE)"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return " (the server does not speak TLS: is it http?)"
	}
	return ""
}

// trySecrets returns the trials that check the environment variables of the file.
func trySecrets(file *config.File, o Options) (all []trial) {
	known := make(map[string]bool)
	for _, secret := range file.Secrets {
		if known[secret.Variable] {
			continue
		}
		known[secret.Variable] = true
		one := config.File{Secrets: []config.Secret{secret}}
		all = append(all, trial{"environment " + secret.Variable, func(context.Context) (string, error) { return "is set", one.CheckEnv(o.Env) }})
	}
	return all
}

// tryAWS returns the trials that check AWS credentials.
func tryAWS(file *config.File) (all []trial) {
	add := func(name, region string) {
		all = append(all, trial{name, func(ctx context.Context) (string, error) {
			cfg, err := awsDefaults(region)
			if err != nil {
				return "", err
			}
			c, err := cfg.Credentials.Retrieve(ctx)
			if err != nil {
				return "", fmt.Errorf("no credentials: %w (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role)", err)
			}
			return "credentials from " + c.Source, nil
		}})
	}
	for _, u := range file.Upstreams {
		if c, ok := file.AWS[u.Name]; ok {
			add("aws of upstream "+u.Name, c.Region)
		}
	}
	if c := file.CloudWatch; c != nil && c.API {
		add("cloudwatch", c.Region)
	}
	if n := file.Notify; n != nil && n.SNS != "" {
		region := ""
		if parts := strings.Split(n.SNS, ":"); len(parts) > 3 {
			region = parts[3]
		}
		add("notify sns", region)
	}
	return all
}

// tryNotify returns the trials that connect to the notification targets. They send no notification.
func tryNotify(file *config.File, o Options) (all []trial) {
	n := file.Notify
	if n == nil {
		return nil
	}
	add := func(name, raw string) {
		all = append(all, trial{name, func(ctx context.Context) (string, error) {
			u, err := url.Parse(raw)
			if err != nil || u.Host == "" {
				return "", errors.New("is not a URL") // without the text, which may contain a secret
			}
			return reach(ctx, o, u)
		}})
	}
	if hook, ok := o.Env(n.WebhookEnv); ok && n.WebhookEnv != "" {
		add("notify webhook", hook)
	}
	if n.NtfyTopicEnv != "" {
		add("notify ntfy", cmp.Or(n.NtfyURL, "https://ntfy.sh"))
	}
	return all
}
