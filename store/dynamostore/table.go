package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Create makes the table if there is none, on demand and with items that are forgotten a
// week after their last use, and waits until it can be used. A table that is there
// already is left as it is but for that.
func (s *Store) Create(ctx context.Context) error {
	w := &work{Call: Call{Op: "create"}, begin: s.o.now()}
	err := s.createTable(ctx, w)
	if err == nil {
		err = s.active(ctx, w)
	}
	if err == nil {
		err = s.expire(ctx, w)
	}
	return s.end(w, err)
}

func (s *Store) createTable(ctx context.Context, w *work) error {
	err := s.try(ctx, w, func() error {
		_, err := s.api.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &s.table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
		}, s.options)
		return err
	})
	if _, there := errors.AsType[*types.ResourceInUseException](err); there {
		return nil
	}
	return err
}

// active waits until the table is, and looks whether it is one of ours.
func (s *Store) active(ctx context.Context, w *work) error {
	for {
		var out *dynamodb.DescribeTableOutput
		err := s.try(ctx, w, func() (err error) {
			out, err = s.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, s.options)
			return err
		})
		_, missing := errors.AsType[*types.ResourceNotFoundException](err)
		if err != nil && !missing { // a new table takes a moment to be seen
			return err
		}
		if err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusActive {
			return ours(out.Table)
		}
		if err := s.o.sleep(ctx, 20*time.Millisecond+s.o.jitter(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

func ours(t *types.TableDescription) error {
	if k := t.KeySchema; len(k) != 1 || aws.ToString(k[0].AttributeName) != "k" {
		return fmt.Errorf("there is a table of that name with another key; weir needs the partition key \"k\" (string) alone: choose another name")
	}
	return nil
}

// expire lets the table forget items by their attribute ttl. Emulators may not know
// how; then nothing is forgotten, and nothing else is different.
func (s *Store) expire(ctx context.Context, w *work) error {
	var out *dynamodb.DescribeTimeToLiveOutput
	err := s.try(ctx, w, func() (err error) {
		out, err = s.api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table}, s.options)
		return err
	})
	if err != nil {
		return unlessUnknown(err)
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	return unlessUnknown(s.try(ctx, w, func() error {
		_, err := s.api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &s.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		}, s.options)
		return err
	}))
}

func unlessUnknown(err error) error {
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "UnknownOperationException" {
		return nil
	}
	return err
}
