package bus

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	day      = 24 * time.Hour
	kib      = 1 << 10
	mib      = 1 << 20
	policyKV = "POLICY"
	noLimit  = -1
	noDedup  = 100 * time.Millisecond // the shortest window the server has; nothing here relies on Nats-Msg-Id
)

// streamName is the name of a stream on the server: the space in capitals, then the role.
func (b *Bus) streamName(s Stream) string {
	return strings.ToUpper(string(b.space)) + "_" + string(s)
}

func (b *Bus) policyBucket() string { return b.streamName(policyKV) }

// topology is every setting of every stream. The order is that of making them.
func (b *Bus) topology() []jetstream.StreamConfig {
	s := string(b.space)
	candidates := b.queue(Candidates, s+".candidate.*.*", s+".cancel.*.*")
	candidates.MaxBytes, candidates.MaxMsgSize = 256*mib, 256*kib
	candidates.PersistMode = b.async()

	tasks := b.keep(Tasks, s+".task.*.*.*", s+".refused.*.*.*", s+".timer.*.*", s+".due.*.*")
	tasks.AllowMsgSchedules, tasks.AllowMsgTTL, tasks.AllowAtomicPublish = true, true, true
	tasks.AllowRollup = true // a schedule replaces the one before it on its subject
	tasks.DenyDelete = true  // deleting a task's last message would bring the state before it back
	tasks.MaxConsumers = 10_000
	tasks.RePublish = &jetstream.RePublish{
		Source:      s + ".task.*.*.*",
		Destination: s + ".wake.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}",
		HeadersOnly: true,
	}

	questions := b.queue(Questions, s+".question.*.*.*.*")
	questions.MaxBytes, questions.MaxAge = 256*mib, 7*day
	questions.PersistMode = b.async()

	answers := b.queue(Answers, s+".answer.*.*.*.*", s+".approval.*.*.*.*", s+".receipt.*.*.*.*")
	answers.MaxBytes, answers.MaxMsgSize = 256*mib, 64*kib

	audit := b.keep(Audit, s+".audit.*.*")
	audit.MaxAge = 400 * day
	audit.DenyDelete, audit.DenyPurge, audit.AllowAtomicPublish = true, true, true

	return []jetstream.StreamConfig{candidates, tasks, questions, answers, audit, b.policyStream(), b.advisories()}
}

// stream is what all streams share.
func (b *Bus) stream(name string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              name,
		Subjects:          subjects,
		Storage:           jetstream.FileStorage,
		Replicas:          b.replicas,
		MaxConsumers:      256,
		MaxMsgs:           noLimit,
		MaxBytes:          noLimit,
		MaxMsgSize:        noLimit,
		MaxMsgsPerSubject: noLimit,
		Duplicates:        noDedup,
	}
}

// queue is an inbox: a message is gone when it is handled, and a full one refuses more rather than lose what it has.
func (b *Bus) queue(role Stream, subjects ...string) jetstream.StreamConfig {
	c := b.stream(b.streamName(role), subjects...)
	c.Retention, c.Discard = jetstream.WorkQueuePolicy, jetstream.DiscardNew
	return c
}

// keep is a log: what is in it stays until it is purged or, where there is a MaxAge, old.
func (b *Bus) keep(role Stream, subjects ...string) jetstream.StreamConfig {
	c := b.stream(b.streamName(role), subjects...)
	c.Retention, c.Discard = jetstream.LimitsPolicy, jetstream.DiscardOld
	return c
}

// async is for streams whose loss at a power cut is mended: candidates are sent again until the log shows them, questions
// are derived again by the watchdog. The server has it on unreplicated streams only.
func (b *Bus) async() jetstream.PersistModeType {
	if b.replicas == 1 {
		return jetstream.AsyncPersistMode
	}
	return jetstream.DefaultPersistMode
}

// policyStream is a key-value bucket, so that the tools for those can read it, but without direct gets.
func (b *Bus) policyStream() jetstream.StreamConfig {
	c := b.stream("KV_"+b.policyBucket(), "$KV."+b.policyBucket()+".>")
	c.Retention, c.Discard = jetstream.LimitsPolicy, jetstream.DiscardNew
	c.MaxMsgsPerSubject = 64
	c.AllowRollup, c.DenyDelete = true, true
	return c
}

// advisories keeps what the server says of messages that no consumer could handle.
func (b *Bus) advisories() jetstream.StreamConfig {
	var subjects []string
	for _, s := range []Stream{Candidates, Tasks, Questions, Answers, Audit} {
		subjects = append(subjects,
			"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+b.streamName(s)+".>",
			"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."+b.streamName(s)+".>")
	}
	c := b.keep(Advisories, subjects...)
	c.MaxAge, c.MaxBytes = 30*day, 64*mib
	return c
}
