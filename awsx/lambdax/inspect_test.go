package lambdax

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// deployed is a function's deployment according to AWS.
type deployed struct {
	timeout    int32
	visibility string
	reports    bool
	state      string
	fail       error
}

func (d *deployed) GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error) {
	return &lambda.GetFunctionConfigurationOutput{Timeout: &d.timeout}, d.fail
}

func (d *deployed) ListEventSourceMappings(_ context.Context, in *lambda.ListEventSourceMappingsInput, _ ...func(*lambda.Options)) (*lambda.ListEventSourceMappingsOutput, error) {
	m := lambdatypes.EventSourceMappingConfiguration{EventSourceArn: aws.String("arn:aws:sqs:eu-west-1:123456789012:messages"), State: &d.state}
	if d.reports {
		m.FunctionResponseTypes = []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures}
	}
	if in.Marker == nil { // the first page has a stream, which is not a queue
		stream := lambdatypes.EventSourceMappingConfiguration{EventSourceArn: aws.String("arn:aws:kinesis:eu-west-1:123456789012:stream/x"), State: aws.String("Enabled")}
		return &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{stream}, NextMarker: aws.String("2")}, nil
	}
	return &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{m}}, nil
}

func (d *deployed) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String("http://sqs/" + *in.QueueOwnerAWSAccountId + "/" + *in.QueueName)}, nil
}

func (d *deployed) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if *in.QueueUrl != "http://sqs/123456789012/messages" {
		return nil, errors.New("another queue")
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"VisibilityTimeout": d.visibility}}, nil
}

func TestADeploymentIsInspected(t *testing.T) {
	good := deployed{timeout: 300, visibility: "300", reports: true, state: "Enabled"}
	for _, tt := range []struct {
		name   string
		kind   Kind
		change func(*deployed)
		says   []string // empty means no error
	}{
		{"a processor", Processor, func(*deployed) {}, nil},
		{"too long", Processor, func(d *deployed) { d.timeout, d.visibility = 900, "900" }, []string{"timeout 15m0s", "set its Timeout to 300"}},
		{"invisible too shortly", Processor, func(d *deployed) { d.visibility = "30" }, []string{"visibility timeout is 30s", "VisibilityTimeout to at least 300", "1800"}},
		{"no reports", Processor, func(d *deployed) { d.reports = false }, []string{"ReportBatchItemFailures", "FunctionResponseTypes"}},
		{"all at once", Processor, func(d *deployed) { d.timeout, d.visibility, d.reports = 900, "30", false }, []string{"Timeout to 300", "VisibilityTimeout to at least 900", "ReportBatchItemFailures"}},
		{"a mapping that is off", Processor, func(d *deployed) { d.reports, d.state = false, "Disabled" }, nil},
		{"an API", API, func(d *deployed) { d.timeout, d.reports = 15, false }, nil},
		{"an API that is long", API, func(d *deployed) { d.timeout = 29 }, []string{"timeout 29s", "kind API", "Timeout to 15"}},
		{"an authorizer", Authorizer, func(d *deployed) { d.timeout = 11 }, []string{"Timeout to 10"}},
		{"a scheduler", Scheduler, func(d *deployed) { d.timeout = 31 }, []string{"Timeout to 30"}},
		{"a notification", Notification, func(d *deployed) { d.timeout = 31 }, []string{"Timeout to 30"}},
		{"another", Other, func(d *deployed) { d.timeout = 900 }, nil},
		{"not permitted", API, func(d *deployed) { d.fail = errors.New("AccessDenied") }, []string{"inspect function f", "AccessDenied"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := good
			tt.change(&d)
			err := Inspect(t.Context(), &d, &d, "f", tt.kind)
			if (err == nil) != (tt.says == nil) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			for _, s := range tt.says {
				if err != nil && !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %q", err, s)
				}
			}
		})
	}
}

func TestKindsHaveLimits(t *testing.T) {
	for k, want := range map[Kind]time.Duration{Scheduler: 30 * time.Second, API: 15 * time.Second, Processor: 5 * time.Minute, Notification: 30 * time.Second, Authorizer: 10 * time.Second, 99: 15 * time.Minute} {
		if k.Limit() != want {
			t.Errorf("%v: %v, want %v", k, k.Limit(), want)
		}
	}
}
