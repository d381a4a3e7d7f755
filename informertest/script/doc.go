// Package script plays scripts of the fate of an informer, its server and the way between them, and
// has an oracle judge what the informer made of it.
//
// A script is a text of one action a line. A line that begins with # is a comment.
//
//	# A token expires between two pages of a list.
//	fill 10
//	informer list=paged page=3
//	fault list page=later 410 times=1
//	start
//	settle
//
// Play puts an informer of any make to it: [Ours] is that of this module, [Shared] and [SharedLate]
// one handler among others of one that is shared, [ClientGo] the one of client-go, and another one
// needs a [Maker]. [Random] writes scripts. In a testing/synctest bubble, a script of a day plays
// in a moment; outside of one, a day takes a day.
//
// # The server
//
//	server [versions=opaque] [bookmarks=D] [shards=on] [gzip=N] [gzip-watches=on] [tls=on] [dialect=NAME]
//	                     in the first line: versions that are no numbers; how often bookmarks come, default: 1m; it
//	                     selects by shard, which is otherwise left to the informer; lists of more
//	                     than N bytes are compressed, default: 128 KiB; with
//	                     gzip-watches, watches are compressed too; with tls, it speaks HTTP/2; dialects
//	                     are those of informertest.Dialects by name
//	create KEY...        create objects ("namespace/name"), update them, delete them,
//	update KEY...
//	delete KEY...
//	recreate KEY...      or delete them and create others under their names
//	fill N               create the first N of the objects that churn writes
//	churn N [keys=30] [every=D] [seed=S]
//	                     N random writes to so many objects, with a random time of at most D before each; default: none
//	other N              N writes to another resource, which move its resource version too
//	compact [odds=N]     forget the history; with odds, right before one in N requests from now on
//	backup               keep the state as it is
//	restore [down=10s]   go back to it, as etcd that is restored; the server is away meanwhile
//	rewind N [down=10s]  likewise, set the resource version back by N, and keep the objects
//	vanish               stop to serve the resource, as when its custom resource definition is deleted
//	return               serve it again
//	disconnect           cut all connections
//	fault FAULT          as informertest.ParseFault has it
//	heal                 take all faults away
//
// # The program
//
//	informer NAME=VALUE...
//	                     what is asked of the informers that start from now on, see [Config]
//	handler [slow=D] [errors=N] [panics=N] [exits=N]
//	                     from now on, each call takes a random time of at most D, and one in N fails, panics, and ends
//	                     its goroutine; what is left out does not happen. A batch fails as a whole, or some of its
//	                     events do
//	hold                 calls of the handler do not return; nor could a stop, which is an error meanwhile
//	release              until now
//	warm                 fill the storage of the first informer with what there is now
//	start [again|new]    start an informer: another one of the same process, which has what the last one has stored; the
//	                     very same again; or that of a new process
//	stop [within=D]      stop the informer, and wait for it
//	shard all            the informers that start from now on follow the whole set, as in the beginning
//	shard A[-B]/N [by=namespace]
//	                     or of N equal parts those from A to B, counted from 0, by UID. A checkpoint of a shard that has
//	                     nothing in common with that is deleted when the next informer starts
//	audit [repair] [speed=N]
//	                     audit the informer, and repair it, beside what follows; it reads so many bytes a second. That an
//	                     audit finds something although nothing was lost is an error
//	redeliver [KEY...] [speed=N]
//	                     deliver all objects, or those with these keys, again, N a second at most, while the script goes
//	                     on. The next run goes on with it if the run ends before that
//	fuse N               the process is killed at its N-th call of a handler, return of one, or saving, from now on
//	kill                 kill the process now, if it is alive
//	full N               one in N savings of the checkpoint fails; 0: none
//
// # Time, and what is to be
//
//	wait D               let time pass
//	mark                 expectations count from here
//	expect synced        or: expect not synced
//	expect lists<=N      the lists and watch-lists asked for since the mark; likewise =N and >=N, and the same with
//	                     watches, unlimited (lists in one piece), errors (reported), calls (of the handler)
//	expect told TYPE KEY [times=N]
//	                     the handler was told since the mark; TYPE is added, updated, deleted or synced
//	settle [D]           take all faults away, also those of the handler and the store, let time pass (default: 40m, more
//	                     than the longest watch), and have the oracle compare what is left
//	relist               have the server forget the history and cut all connections, so that the informer has to list
//
// Times are as those of time.ParseDuration. Each script should end with a settle, for the end is
// what an informer is for.
package script
