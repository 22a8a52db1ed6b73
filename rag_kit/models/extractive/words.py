"""Frequent English words that carry little of a question's topic, so that rarer ones decide."""

from __future__ import annotations

# Words that frame a question and are not expected in its answer.
_FRAME = (
    "name names named call called type types kind kinds sort many much year years date time times person people "
    "thing things term terms word words happen happened happens according following given mean means meant "
    "main long often number amount percentage example examples reason reasons way ways describe list "
    "considered known refer refers referred"
)
FRAME = frozenset(_FRAME.split())

# Frequent nouns, verbs and adjectives of general English, from common knowledge of the language.
_COMMON = (
    "able accept according account act action active actual add age ago allow almost already also always area "
    "around ask away back bad base based become before begin believe best better big body book both bring build "
    "built business buy came carry case cause certain change child children city claim class clear close come "
    "common company complete contain continue control cost could country course cover create current cut day "
    "days decide decision deal deep develop development differ difference different difficult do doing done down "
    "draw drive during early easy effect effects either else end enough even event ever every exist face fact "
    "fall family far feel few field figure final find first follow force form former found full further future "
    "gave general get give go goal good got great group grow had half hand hard have head hear held help high "
    "hold home hour house idea impact important include increase individual inside instead interest involve issue "
    "issues item just keep kept kill know known lack land large last late later law lead leader learn least leave "
    "led left less let level life light like likely limit line little live local look lose lost lot low made make "
    "making man manage may member members method might million mind minor moment money month more most move much "
    "must national nation near need needed new next night nothing now occur offer office old once one open "
    "opinion order organization original others own page part particular party pass past pay people perform "
    "period person place plan play point popular position possible power present prevent problem process produce "
    "program provide public purpose put question quite rate reach read real receive recent relate related remain "
    "report require result results return right role run said same save say school second see seem sell send "
    "serve service set several shape share short show side similar since single size small social some source "
    "south special stand start started state states stay still stop story strong study success such support take "
    "taken talk tell three today together told took top total toward travel try turn two type under understand "
    "unit until use used user uses using usual value various very view want war watch water week well went west "
    "whole wide win within without won woman women work world would write written wrong year young"
)
COMMON = frozenset(_COMMON.split())
