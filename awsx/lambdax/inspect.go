package lambdax

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// LambdaAPI is the part of *lambda.Client that Inspect needs.
type LambdaAPI interface {
	GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
	ListEventSourceMappings(context.Context, *lambda.ListEventSourceMappingsInput, ...func(*lambda.Options)) (*lambda.ListEventSourceMappingsOutput, error)
}

// QueueAPI is the part of *sqs.Client that Inspect needs.
type QueueAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Inspect checks the deployment of a function: its timeout and, for a Processor, the queues that are mapped to it. It returns all
// errors with their remedies. Call it when the function starts, or after a deployment. It needs the permissions
// lambda:GetFunctionConfiguration, lambda:ListEventSourceMappings, sqs:GetQueueUrl and sqs:GetQueueAttributes. The name is in
// AWS_LAMBDA_FUNCTION_NAME. Without these permissions a function only knows the deadline in its context, and batches and requests
// end by their limits.
func Inspect(ctx context.Context, functions LambdaAPI, queues QueueAPI, name string, k Kind) error {
	f, err := functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		return fmt.Errorf("lambdax: inspect function %s: %w", name, err)
	}
	timeout := time.Duration(aws.ToInt32(f.Timeout)) * time.Second
	errs := []error{k.Check(timeout)}
	if k == Processor {
		all, err := mappings(ctx, functions, queues, name)
		errs = append(errs, err)
		for i := range all {
			errs = append(errs, all[i].Check(timeout))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lambdax: function %s: %w", name, err)
	}
	return nil
}

func mappings(ctx context.Context, functions LambdaAPI, queues QueueAPI, name string) (all []Mapping, err error) {
	pages := lambda.NewListEventSourceMappingsPaginator(functions, &lambda.ListEventSourceMappingsInput{FunctionName: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return all, fmt.Errorf("list its event source mappings: %w", err)
		}
		for _, m := range page.EventSourceMappings {
			arn := aws.ToString(m.EventSourceArn)
			if strings.HasPrefix(aws.ToString(m.State), "Disabl") || len(strings.Split(arn, ":")) != 6 || strings.Split(arn, ":")[2] != "sqs" {
				continue
			}
			visible, err := visibility(ctx, queues, arn)
			if err != nil {
				return all, err
			}
			all = append(all, Mapping{arn, visible, slices.Contains(m.FunctionResponseTypes, lambdatypes.FunctionResponseTypeReportBatchItemFailures)})
		}
	}
	return all, nil
}

func visibility(ctx context.Context, queues QueueAPI, arn string) (time.Duration, error) {
	parts := strings.Split(arn, ":")
	at, err := queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &parts[5], QueueOwnerAWSAccountId: &parts[4]})
	if err != nil {
		return 0, fmt.Errorf("find queue %s: %w", arn, err)
	}
	out, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: at.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout}})
	if err != nil {
		return 0, fmt.Errorf("read queue %s: %w", arn, err)
	}
	seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
	if err != nil {
		return 0, fmt.Errorf("inspect queue %s: its visibility timeout: %w", arn, err)
	}
	return time.Duration(seconds) * time.Second, nil
}
