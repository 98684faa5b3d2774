package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/fleet"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/observe/notify"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// An escalation reports events to CloudWatch and to people. Parts that the file does not configure are nil.
type escalation struct {
	metrics  *weircw.Exporter
	notifier *notify.Notifier
}

func newEscalation(file *config.File, env func(string) (string, bool), log *slog.Logger) (e escalation, err error) {
	if c := file.CloudWatch; c != nil {
		if e.metrics, err = newCloudWatch(c, log); err != nil {
			return e, fmt.Errorf("cloudwatch: %w", err)
		}
	}
	if c := file.Notify; c != nil {
		if e.notifier, err = newNotifier(file, env, log); err != nil {
			return e, fmt.Errorf("notify: %w", err)
		}
	}
	return e, nil
}

// dead makes CloudWatch receive the number of dead letters.
func (e *escalation) dead(counts func(context.Context) ([]delivery.Count, error)) {
	if e.metrics != nil {
		e.metrics.Deliveries(counts)
	}
}

func newCloudWatch(c *config.CloudWatch, log *slog.Logger) (*weircw.Exporter, error) {
	full := weircw.Config{
		Namespace: c.Namespace, Region: c.Region, Interval: c.Interval, Series: c.Series, Design: c.Design,
		Static: c.Static, Metrics: c.Metrics, Names: c.Names, Log: log,
	}
	if c.API {
		cfg, err := awsDefaults(c.Region)
		if err != nil {
			return nil, err
		}
		full.API = weircw.Client(cfg)
	}
	return weircw.New(full)
}

// awsDefaults loads the SDK's default configuration.
func awsDefaults(region string) (aws.Config, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	cfg, err := awsconfig.LoadDefaultConfig(ctx, func(o *awsconfig.LoadOptions) error { o.Region, o.Logger = region, sdkLog(slog.Default()); return nil })
	if err == nil && cfg.Region == "" {
		err = errors.New("no AWS region: set region in the file, or AWS_REGION")
	}
	return cfg, err
}

func newNotifier(file *config.File, env func(string) (string, bool), log *slog.Logger) (*notify.Notifier, error) {
	c := file.Notify
	full := notify.Config{
		Kinds: c.Kinds, Interval: c.Interval, Runbook: c.Runbook, Log: log,
		Service: func(upstream string) string { return file.AWS[upstream].Service },
	}
	var errs []error
	secret := func(name string) notify.Secret {
		v, ok := env(name)
		if !ok && name != "" {
			errs = append(errs, fmt.Errorf("environment variable %s is not set", name))
		}
		return notify.Secret(v)
	}
	add := func(t notify.Target, err error) {
		full.Targets, errs = append(full.Targets, t), append(errs, err)
	}
	if c.WebhookEnv != "" {
		add(notify.NewWebhook(notify.Webhook{URL: secret(c.WebhookEnv), Secret: secret(c.WebhookSecretEnv)}))
	}
	if c.NtfyTopicEnv != "" {
		add(notify.NewNtfy(notify.Ntfy{URL: notify.Secret(c.NtfyURL), Topic: secret(c.NtfyTopicEnv), Token: secret(c.TokenEnv)}))
	}
	if c.SNS != "" {
		region := ""
		if parts := strings.Split(c.SNS, ":"); len(parts) > 3 {
			region = parts[3]
		}
		cfg, err := awsDefaults(region)
		if err != nil {
			return nil, err
		}
		add(notify.NewSNS(notify.SNS{API: notify.SNSClient(cfg), Topic: c.SNS}))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return notify.New(full)
}

// events combines the given events with those of the escalation.
func (e *escalation) events(all ...weir.Events) weir.Events {
	if e.metrics != nil {
		all = append(all, e.metrics.Events())
	}
	if e.notifier != nil {
		all = append(all, e.notifier.Events())
	}
	return weir.Tee(all...)
}

func (e *escalation) fleet(all ...fleet.Events) fleet.Events {
	if e.metrics != nil {
		all = append(all, e.metrics.Fleet())
	}
	if e.notifier != nil {
		all = append(all, e.notifier.Fleet())
	}
	return fleet.TeeFleet(all...)
}

// died notifies people of dead letters.
func (e *escalation) died(upstream, reason string, number int) {
	if e.notifier != nil {
		e.notifier.Died(upstream, reason, number)
	}
}

// failed notifies people of a call that failed because of weir itself.
func (e *escalation) failed(upstream, reason, id string) {
	if e.notifier != nil {
		e.notifier.Failed(upstream, reason, id)
	}
}

func (e *escalation) watch(u *weir.Upstream) {
	if e.metrics != nil {
		e.metrics.Watch(u)
	}
}

// recheck checks whether the breakers in notifications still exist at the named upstreams.
func (e *escalation) recheck(names []string, now map[string]*weir.Upstream) {
	if e.notifier == nil {
		return
	}
	for _, name := range names {
		e.notifier.Recheck(name, now[name])
	}
}

func (e *escalation) forget(name string) {
	if e.metrics != nil {
		e.metrics.Forget(name)
	}
}

// close sends the remaining reports.
func (e *escalation) close(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if e.metrics != nil {
		if err := e.metrics.Close(ctx); err != nil {
			log.Warn("the last metrics were not delivered to CloudWatch", "error", err.Error())
		}
	}
	if e.notifier != nil {
		if err := e.notifier.Close(ctx); err != nil {
			log.Warn("the last notifications were not delivered", "error", err.Error())
		}
	}
}
