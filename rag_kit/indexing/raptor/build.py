"""Build a tree of summaries over the passages of an index, or bring it up to date."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import StoredRow, make_rows
from rag_kit.indexing.document_index.vectors import Vectors, decode_vectors, unit
from rag_kit.indexing.document_index.writing import Batch
from rag_kit.indexing.raptor.clusters import soft_clusters
from rag_kit.indexing.raptor.tree import RaptorTree, short_hash
from rag_kit.indexing.representing.asking import Asker, ModelCost, PassageRequest
from rag_kit.indexing.representing.kinds import RepresentationKind
from rag_kit.indexing.searched import RAPTOR, REPRESENTATION, embedded_row
from rag_kit.models import chat_model
from rag_kit.models.replies import estimate_tokens

_CLUSTER = RepresentationKind("cluster", "cluster")  # its prompts are `represent_cluster`
_MAX_CHANGED = 0.3  # share of changed passages above which the clusters are made anew
_PLACEHOLDER = "summary " * 100  # in place of a summary that is only planned
_BEGINNINGS_TOKENS = 300  # tokens of the beginnings in place of a summary that the model did not give
_POSITION_FIELDS = ("chunk", "start", "end", "page", "parent_id")  # of passages, which summaries do not have


@dataclass
class RaptorReport(ModelCost):
    """Report of building a tree, with its cost; of a dry run, the expected one."""

    passages: int = 0
    summaries: list[int] = field(default_factory=list)  # of each level, from the lowest
    changed: int = 0  # passages that are others than those that the clusters were made of
    rebuilt: int = 0  # trees (one for each value of ``partition``) whose clusters were made anew
    failed: int = 0  # summaries that the model did not give; the next run asks again
    embedded: int = 0  # texts that went through the embedding model


def build_raptor(
    index: DocumentIndex,
    llm: Any = None,
    *,
    partition: Sequence[str] | None = None,
    seed: int = 0,
    max_tokens: int = 3_500,
    rebuild: bool = False,
    dry_run: bool = False,
    max_concurrency: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> RaptorReport:
    """Summarise clusters of passages, clusters of these summaries, and so on until one is left.

    Clusters are soft: Gaussian mixtures over the stored vectors in fewer dimensions, their number by BIC; a summary is
    clustered by the mean of its members. Summaries are rows of the index, replaced in one transaction, which
    ``RaptorRetriever`` searches. Replies are kept with the index: a call that was killed goes on where it stopped.

    Called again, it updates the tree: a new passage goes to the nearest cluster, and only what is above a change is
    written again. If more than 30% of the passages have changed, clusters are made anew; ``dry_run`` says the cost.

    Paper: Sarthi et al., RAPTOR, arXiv 2401.18059.

    Args:
        index: An index with vectors, opened for writing with its embedding model.
        llm: Chat model; default: the configured one. The embedded one selects sentences.
        partition: Metadata fields whose values never mix, a tree for each; default: as the tree has, else none.
        seed: Of the clusters; the same passages and seed give the same ones.
        max_tokens: About how many tokens the texts of one cluster have at most.
        rebuild: Make all clusters and summaries anew.
        dry_run: Write nothing; the report says how many calls and, about, how many tokens it would take.
        max_concurrency: Most calls of the model at a time.
        progress: Called with how many of how many calls of a level are done.

    Raises:
        InvalidInputError: The index has no vectors, was opened without its model, or an argument is not allowed.
        MissingExtraError: scikit-learn is not installed.
        ModelError: A model cannot be reached, or refuses. The old tree stays, and so do replies that came.
        DocumentIndexError: The index was opened for reading.
    """
    if index.embedding is None or index.embeddings is None:
        raise InvalidInputError(
            "A tree of summaries needs an index with vectors, opened with its embedding model: "
            "DocumentIndex.open(folder, mode='w', embeddings=embedding_model(...))."
        )
    if not dry_run:
        with index.transaction():  # raises for an index opened for reading, before a model is paid
            pass
    replies = index.replies
    llm = chat_model() if llm is None else llm
    cache = None if dry_run and not replies.exists() else replies
    asker = Asker([_CLUSTER], llm, cache, max_concurrency)
    return _TreeBuilder(index, asker, partition, seed, max_tokens, rebuild, dry_run, progress).build()


class _Node(NamedTuple):
    """A passage or a summary, to be clustered and summarised."""

    text: str
    hash: str
    metadata: Mapping[str, Any]
    vector: Vectors


class _Cluster(NamedTuple):
    """The nodes under one summary."""

    tree: str
    id: str  # of the summary
    members: list[str]  # ids of nodes
    first_members: dict[str, str]  # passages it was made of, with their texts' hashes; empty above level 1


@dataclass
class _TreeBuilder:
    """One call of `build_raptor`: the passages and summaries (nodes), the old tree, and the rows to write."""

    index: DocumentIndex
    asker: Asker
    partition: Sequence[str] | None
    seed: int
    max_tokens: int
    rebuild: bool
    dry: bool
    progress: Callable[[int, int], None] | None

    def __post_init__(self) -> None:
        self.rows = list[StoredRow]()
        self.nodes, self.old_tree = self._read_index()
        self.report = RaptorReport(passages=len(self.nodes))
        # a tree is named by the values of its partition as JSON: '{"tenant": "a"}'; without a partition: '{}'
        self.old_summaries: dict[tuple[str, int], list[Document]] = defaultdict(list)  # by tree and level
        for summary in self.old_tree.nodes.values():
            tree, level = _json(summary.metadata[RAPTOR]["partition"]), summary.metadata["level"]
            self.old_summaries[tree, level].append(summary)
        fields = self._partition_fields()
        self.passages: dict[str, list[str]] = defaultdict(list)  # ids by tree
        for key, node in self.nodes.items():
            self.passages[_json({name: node.metadata.get(name) for name in fields})].append(key)
        self.new_trees = set[str]()  # whose clusters are made anew
        for tree, ids in self.passages.items():
            clustered, changed = self._count_changes(tree, ids)
            self.report.changed += changed
            if self.rebuild or changed > _MAX_CHANGED * clustered:
                self.new_trees.add(tree)
        self.report.rebuilt = sum(len(self.passages[tree]) > 1 for tree in self.new_trees)

    def _read_index(self) -> tuple[dict[str, _Node], RaptorTree]:
        """Return the passages with vectors, by id, and the tree that the index has, in one state of it."""
        query = (
            "SELECT c.id, c.text, c.metadata, c.hash, v.vector FROM chunks c JOIN vectors v USING (n) "
            "ORDER BY c.source, c.ordinal, c.id"
        )
        with self.index.view() as (connection, state, _):
            tree = RaptorTree.of(connection)
            stored = ((row, blob) for *row, blob in connection.execute(query))
            rows, vectors = decode_vectors(stored, state.dimension or 0)
        passages = {}
        for (key, text, fields, digest), vector in zip(rows, unit(vectors), strict=True):
            metadata = json.loads(fields)
            if REPRESENTATION not in metadata and text.strip():
                passages[key] = _Node(embedded_row(text, fields), short_hash(digest), metadata, vector)
        return passages, tree

    def _partition_fields(self) -> list[str]:
        """Return the metadata fields by which there are separate trees."""
        if self.partition is None:
            summary = next(iter(self.old_tree.nodes.values()), None)  # any, for all have the same fields
            return [] if summary is None else sorted(summary.metadata[RAPTOR]["partition"])
        fields = {self.partition} if isinstance(self.partition, str) else set(self.partition)
        known = {name for node in self.nodes.values() for name in node.metadata}
        if self.nodes and not fields <= known:
            raise InvalidInputError(
                f"partition={sorted(fields)!r} was given, and no passage has the field {min(fields - known)!r}; "
                f"there are: {', '.join(sorted(known))}."
            )
        return sorted(fields)

    def _count_changes(self, tree: str, ids: Sequence[str]) -> tuple[int, int]:
        """Return how many passages a tree was clustered from, and how many changed since, were added or removed."""
        # both hold pairs of id and hash: a changed passage has another pair
        present, clustered = self._hashes(ids).items(), set[tuple[str, str]]()
        for summary in self.old_summaries[tree, 1]:
            clustered.update(summary.metadata[RAPTOR]["first"].items())
        if not clustered and len(present) < 2:
            return 0, 0  # a single passage has no tree
        # the larger difference, not the sum, for a changed passage is in both
        return len(clustered), max(len(present - clustered), len(clustered - present))

    def build(self) -> RaptorReport:
        """Cluster and summarise level by level, all trees at once; then replace the rows in one transaction."""
        to_cluster, level = dict(self.passages), 1  # ids of nodes by tree: passages, then summaries
        while to_cluster:
            next_to_cluster, clusters_of_level = dict[str, list[str]](), list[_Cluster]()
            for tree, ids in to_cluster.items():
                clusters = self._clusters_of_level(tree, level, ids)
                clusters_of_level += clusters
                # a new tree ends at as many clusters as nodes, which would give as many again on the next level
                if clusters and (tree not in self.new_trees or len(clusters) < len(ids)):
                    next_to_cluster[tree] = [cluster.id for cluster in clusters]
            if clusters_of_level:
                self._summarise(level, clusters_of_level)
                self.report.summaries.append(len(clusters_of_level))
            to_cluster, level = next_to_cluster, level + 1
        if not self.dry:
            removed = self.old_tree.nodes.keys() - {row.id for row in self.rows}
            batch = Batch(rows=self.rows, removed_ids=sorted(removed))
            self.report.embedded = self.index.write(batch).embedded
        return self.report

    def _clusters_of_level(self, tree: str, level: int, ids: Sequence[str]) -> list[_Cluster]:
        """Return the clusters of a tree's level: made anew of the nodes, or the old ones brought up to date."""
        if tree not in self.new_trees:
            return self._update_clusters(tree, level, ids)
        if len(ids) < 2:
            return []
        sizes = [estimate_tokens(self.nodes[key].text) for key in ids]
        clusters = []
        for positions in soft_clusters(self._vectors(ids), sizes, self.max_tokens, self.seed):
            members = [ids[position] for position in positions]
            first_members = self._hashes(members) if level == 1 else {}
            key = f"{RAPTOR}:{level}:{_digest([tree, sorted(members)])}"
            clusters.append(_Cluster(tree, key, members, first_members))
        return clusters

    def _update_clusters(self, tree: str, level: int, ids: Sequence[str]) -> list[_Cluster]:
        """Return the old clusters without members that are gone or changed; each new node joins the nearest cluster."""
        clusters, present, clustered = [], set(ids), set[str]()
        for summary in self.old_summaries[tree, level]:
            data = summary.metadata[RAPTOR]
            old_hashes = data["leaves"]  # of passages when summarised; none above level 1
            members = [key for key in summary.metadata["members"] if key in present]
            members = [key for key in members if old_hashes.get(key) in (None, self.nodes[key].hash)]
            if members:
                clusters.append(_Cluster(tree, summary.id or "", members, data["first"]))
                clustered.update(members)
        new_ids = [key for key in ids if key not in clustered]
        if clusters and new_ids:
            centres = unit(np.stack([self._vectors(cluster.members).mean(axis=0) for cluster in clusters]))
            nearest_clusters = (self._vectors(new_ids) @ centres.T).argmax(axis=1)
            for key, nearest in zip(new_ids, nearest_clusters, strict=True):
                clusters[nearest].members.append(key)
        return clusters

    def _hashes(self, ids: Sequence[str]) -> dict[str, str]:
        return {key: self.nodes[key].hash for key in ids}

    def _vectors(self, ids: Sequence[str]) -> Vectors:
        return np.stack([self.nodes[key].vector for key in ids])

    def _summarise(self, level: int, clusters: Sequence[_Cluster]) -> None:
        """Add a row for each cluster's summary: the old one, or the model's if the members have changed."""
        requests: dict[str, PassageRequest] = {}
        for cluster in clusters:
            old = None if self.rebuild else self.old_tree.nodes.get(cluster.id)
            if old is None or old.metadata[RAPTOR]["digest"] != self._members_digest(cluster):
                passage = Document(self._joined_text(cluster, self.max_tokens))
                requests[cluster.id] = self.asker.request(_CLUSTER, passage, cluster.id)
        replies = self.asker.answer(list(requests.values()), self.report, self.progress, dry=self.dry)
        for cluster in clusters:
            digest = self._members_digest(cluster)
            if cluster.id not in requests:
                text = self.old_tree.nodes[cluster.id].page_content
            elif summary := replies.get(requests[cluster.id].key):
                text = summary[0]
            elif self.dry:
                text = f"{_PLACEHOLDER}{cluster.id}"
            else:
                # no members have the digest "", so that the next run asks again
                text, digest = self._joined_text(cluster, _BEGINNINGS_TOKENS), ""
                self.report.failed += 1
            self._add_row(level, cluster, text, digest)

    def _add_row(self, level: int, cluster: _Cluster, text: str, digest: str) -> None:
        """Add the summary of a cluster to the rows to write, and to the nodes, as one of the next level."""
        members = cluster.members
        # fields that all members have with equal values, compared as JSON, for a list has no hash
        metadata = [self.nodes[key].metadata.items() for key in members]
        equal = set.intersection(*({(name, _json(value)) for name, value in pairs} for pairs in metadata))
        shared = {name: json.loads(value) for name, value in sorted(equal) if name not in _POSITION_FIELDS}
        data = {
            "partition": json.loads(cluster.tree),
            "digest": digest,
            "first": cluster.first_members,
            "leaves": self._hashes(members) if level == 1 else {},
        }
        fields = {**shared, REPRESENTATION: RAPTOR, "level": level, "members": members, RAPTOR: data}
        summary = Document(text, id=cluster.id, metadata=fields)
        row = make_rows([summary], source="")[0]
        self.rows.append(row)
        vector = unit(self._vectors(members).mean(axis=0))
        self.nodes[cluster.id] = _Node(text, short_hash(row.hash), shared, vector)

    def _members_digest(self, cluster: _Cluster) -> str:
        return _digest(sorted(self._hashes(cluster.members).values()))

    def _joined_text(self, cluster: _Cluster, max_tokens: int) -> str:
        """Join the texts of a cluster; cut all by the same share if they have over ``max_tokens`` together."""
        texts = [self.nodes[key].text for key in cluster.members]
        total = sum(map(estimate_tokens, texts))
        if total > max_tokens:
            texts = [text[: max(1, len(text) * max_tokens // total)] for text in texts]
        return "\n\n".join(texts)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()[:16]
