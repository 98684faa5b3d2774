package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/observe"
)

// SNSAPI is the part of the SNS API that a topic needs. *sns.Client implements it. See SNSClient.
type SNSAPI interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

var _ SNSAPI = (*sns.Client)(nil)

// SNSClient returns a client for a topic. It makes one attempt per call, because the notifier repeats attempts. It bypasses
// weir's middleware in the configuration: a message must not cause events that cause messages.
func SNSClient(c aws.Config) *sns.Client {
	c = c.Copy()
	c.APIOptions = nil
	c.Interceptors = aws.Config{}.Interceptors
	if h, ok := c.HTTPClient.(*http.Client); ok {
		if t, ok := h.Transport.(*httpx.Transport); ok {
			plain := *h
			plain.Transport = t.Base
			c.HTTPClient = &plain
		}
	}
	return sns.NewFromConfig(c, func(o *sns.Options) { o.Retryer = aws.NopRetryer{} })
}

// SNS is an SNS topic.
type SNS struct {
	API   SNSAPI
	Topic string // ARN
}

var arns = regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$`)

type snsTopic struct {
	SNS
	name string
}

// NewSNS returns a target for a topic, or the errors in its configuration.
func NewSNS(s SNS) (Target, error) {
	var errs []error
	if s.API == nil {
		errs = append(errs, errors.New("api: want a client"))
	}
	if !arns.MatchString(s.Topic) {
		errs = append(errs, errors.New("topic: want an ARN, arn:aws:sns:<region>:<account>:<name>"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("sns: %w", err)
	}
	return &snsTopic{SNS: s, name: "sns " + s.Topic[strings.LastIndexByte(s.Topic, ':')+1:]}, nil
}

func (s *snsTopic) Name() string { return s.name }

// mostSubject is the maximum length of a subject. SNS requires less than 100 ASCII characters (API reference of Publish,
// 2026-09).
const mostSubject = 99

func (s *snsTopic) Send(ctx context.Context, m Message) error {
	in := &sns.PublishInput{
		TopicArn: &s.Topic, Subject: aws.String(ascii(observe.Cut(m.Title(), mostSubject))), Message: aws.String(m.Text()),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"kind":     {DataType: aws.String("String"), StringValue: aws.String(string(m.Kind))},
			"resolved": {DataType: aws.String("String"), StringValue: aws.String(fmt.Sprint(m.Resolved))},
		},
	}
	if strings.HasSuffix(s.Topic, ".fifo") { // messages of one kind stay in order
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(string(m.Kind)), &m.ID
	}
	if _, err := s.API.Publish(ctx, in); err != nil {
		return &SendError{Target: s.name, Final: finalSNS(err), Err: err}
	}
	return nil
}

func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// finalSNS reports whether a repeated attempt would fail in the same way (errors of Publish in its API reference, 2026-09).
func finalSNS(err error) bool {
	e, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && slices.Contains([]string{
		"NotFound", "NotFoundException", "InvalidParameter", "InvalidParameterException", "InvalidParameterValue",
		"InvalidParameterValueException", "AuthorizationError", "AuthorizationErrorException", "InvalidSecurity",
		"InvalidSecurityException", "ValidationException", "EndpointDisabled",
	}, e.ErrorCode())
}
