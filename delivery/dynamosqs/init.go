package dynamosqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// indexes lists the indexes of the table with their keys.
var indexes = map[string][2]types.AttributeDefinition{
	"due":   {attribute("q", "S"), attribute("d", "S")},
	"list":  {attribute("s", "S"), attribute("o", "N")},
	"watch": {attribute("w", "S"), attribute("t", "N")},
}

func attribute(name string, of types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: of}
}

func keys(hash, rng string) []types.KeySchemaElement {
	return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &rng, KeyType: types.KeyTypeRange}}
}

// A SchemaError means that the table or the queue is unsuitable for deliveries.
type SchemaError struct{ What, Why, Do string }

func (e *SchemaError) Error() string { return fmt.Sprintf("%s: %s; %s", e.What, e.Why, e.Do) }

// mostReceives is how often SQS delivers a message before it moves it to the dead letter queue. It is high because weir
// counts attempts itself, and a message that waits for a limit is received many times.
const mostReceives = 1000

// leastReceives is the smallest acceptable value.
const leastReceives = 100

// Init creates the table and the queue, with its dead letter queue, if they do not exist. It enables the table's TTL,
// and then checks everything.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	if made, err = s.initTable(ctx); err != nil {
		return made, s.explain("create the table", err)
	}
	if s.o.Queue != nil {
		did, err := s.initQueue(ctx)
		if made = made || did; err != nil {
			return made, fmt.Errorf("create the queue %s: %w", s.o.QueueURL, err)
		}
	}
	return made, s.Check(ctx)
}

func (s *Store) initTable(ctx context.Context) (bool, error) {
	in := &dynamodb.CreateTableInput{TableName: &s.o.Name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys("k", "n"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("k", "S"), attribute("n", "N")}}
	for name, of := range indexes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, of[:]...)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: &name, KeySchema: keys(*of[0].AttributeName, *of[1].AttributeName),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}})
	}
	_, err := s.o.Table.CreateTable(ctx, in)
	if _, there := errors.AsType[*types.ResourceInUseException](err); there {
		if s.CheckTTL(ctx) != nil {
			return false, s.forget(ctx)
		}
		return false, nil
	}
	for err == nil {
		var out *dynamodb.DescribeTableOutput
		if out, err = s.o.Table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.o.Name}); err == nil && active(out.Table) {
			break
		}
		if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing { // a new table is not visible immediately
			err = nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return true, context.Cause(ctx)
		}
	}
	if err == nil {
		err = s.forget(ctx)
	}
	return true, err
}

func active(t *types.TableDescription) bool {
	if t.TableStatus != types.TableStatusActive {
		return false
	}
	for _, i := range t.GlobalSecondaryIndexes {
		if i.IndexStatus != types.IndexStatusActive {
			return false
		}
	}
	return true
}

// forget enables the TTL, with which DynamoDB deletes expired keys and responses. If an emulator does not support it,
// they stay.
func (s *Store) forget(ctx context.Context) error {
	_, err := s.o.Table.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &s.o.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "UnknownOperationException" {
		return nil
	}
	return err
}

func (s *Store) initQueue(ctx context.Context) (bool, error) {
	if _, err := s.attributes(ctx); err == nil {
		return false, nil
	} else if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); !missing {
		return false, err
	}
	name := path.Base(s.o.QueueURL)
	dead, err := s.o.Queue.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name + "-dead"), Attributes: map[string]string{"MessageRetentionPeriod": "1209600"}})
	if err != nil {
		return false, err
	}
	of, err := s.o.Queue.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: dead.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"QueueArn"}})
	if err != nil {
		return false, err
	}
	redrive, _ := json.Marshal(map[string]string{"deadLetterTargetArn": of.Attributes["QueueArn"], "maxReceiveCount": strconv.Itoa(mostReceives)})
	made, err := s.o.Queue.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{
		"VisibilityTimeout": strconv.Itoa(int(unseen / time.Second)), "ReceiveMessageWaitTimeSeconds": "20", "RedrivePolicy": string(redrive)}})
	if err != nil {
		return false, err
	}
	if got := aws.ToString(made.QueueUrl); path.Base(got) != name {
		return true, fmt.Errorf("the queue that was created is %s", got)
	}
	return true, nil
}

func (s *Store) attributes(ctx context.Context) (map[string]string, error) {
	out, err := s.o.Queue.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &s.o.QueueURL, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// Check checks that the table and the queue can be reached and are suitable. It returns a SchemaError if they are not.
func (s *Store) Check(ctx context.Context) error {
	table := fmt.Sprintf("dynamodb table %q", s.o.Name)
	out, err := s.o.Table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.o.Name})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return &SchemaError{table, "there is none in this region", "run weir store init"}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	if !isKey(out.Table.KeySchema, "k", "n") {
		return &SchemaError{table, "its keys do not match those of deliveries", "choose another name, and run weir store init"}
	}
	found := 0
	for _, i := range out.Table.GlobalSecondaryIndexes {
		if of, known := indexes[aws.ToString(i.IndexName)]; known && isKey(i.KeySchema, *of[0].AttributeName, *of[1].AttributeName) {
			found++
		}
	}
	if found != len(indexes) {
		return &SchemaError{table, "it lacks indexes that deliveries need", "choose another name, and run weir store init"}
	}
	if s.o.Queue == nil {
		return nil
	}
	return s.checkQueue(ctx)
}

// CheckTTL returns a SchemaError if the table does not delete expired items, because it would grow without limit. It
// returns nil if the setting cannot be read, as with emulators and roles without the permission.
func (s *Store) CheckTTL(ctx context.Context) error {
	out, err := s.o.Table.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.o.Name})
	if err != nil || enabled(out.TimeToLiveDescription) {
		return nil
	}
	return &SchemaError{fmt.Sprintf("dynamodb table %q", s.o.Name), "its TTL, which removes old items, is disabled", "run weir store init"}
}

func enabled(d *types.TimeToLiveDescription) bool {
	return d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

func isKey(k []types.KeySchemaElement, hash, rng string) bool {
	return len(k) == 2 && aws.ToString(k[0].AttributeName) == hash && aws.ToString(k[1].AttributeName) == rng
}

func (s *Store) checkQueue(ctx context.Context) error {
	queue := "sqs queue " + s.o.QueueURL
	of, err := s.attributes(ctx)
	if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); missing {
		return &SchemaError{queue, "there is none", "run weir store init"}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", queue, err)
	}
	var redrive struct{ MaxReceiveCount json.RawMessage }
	_ = json.Unmarshal([]byte(of["RedrivePolicy"]), &redrive)
	receives, _ := strconv.Atoi(strings.Trim(string(redrive.MaxReceiveCount), `"`))
	switch {
	case of["FifoQueue"] == "true":
		return &SchemaError{queue, "it is a FIFO queue, whose messages cannot be delayed individually", "name a standard queue: order keys are kept in order by the table"}
	case receives > 0 && receives < leastReceives:
		return &SchemaError{queue, fmt.Sprintf("its maxReceiveCount is %d, which a pause or an open breaker would exceed", receives), fmt.Sprintf("set it to %d or more: weir counts attempts itself", leastReceives)}
	}
	return nil
}
